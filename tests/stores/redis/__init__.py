"""The Redis store, on real servers."""
