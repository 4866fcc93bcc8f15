"""The Anthropic Messages format: encode, decode and the model that uses both."""
