"""The Gemini `generateContent` format: encode, decode and the model that uses both."""
