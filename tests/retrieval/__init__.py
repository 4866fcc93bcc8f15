"""Looking things up: words, passages, indexes, and functions that search."""
