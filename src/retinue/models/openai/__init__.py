"""The Chat Completions format: encode, decode and the model that uses both."""
