"""The version, apart from the package root so that every part of retinue may read it."""

__version__ = "0.1.0"
