"""The embedded model: llama.cpp in a process of its own, on a GGUF file. No network, no key."""

from retinue.models.llamacpp.model import Local

__all__ = ["Local"]
