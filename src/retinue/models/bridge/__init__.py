"""Vendors outside the adapters, through pydantic-ai: encode, decode, errors."""
