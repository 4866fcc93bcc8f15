"""What providers send, replayed from recordings and from cases written by hand."""
