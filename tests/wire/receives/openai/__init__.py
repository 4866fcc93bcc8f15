"""The Chat Completions format."""
