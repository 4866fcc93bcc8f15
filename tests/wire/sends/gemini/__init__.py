"""The Gemini format."""
