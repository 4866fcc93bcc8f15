"""The Responses format."""
