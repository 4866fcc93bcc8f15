"""OpenAI's Responses format: encode, decode and the model that uses both."""
