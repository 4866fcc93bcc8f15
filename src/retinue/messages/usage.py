"""Token counts in one normal form (R-USAGE-1)."""

from msgspec import Struct


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one model call, or of several added up. Unknown is None, never 0.

    Attributes:
        input: the whole prompt, cached parts included.
        cache_read: the part of `input` that a cache served.
        cache_write: the part of `input` that was written to a cache.
        output: all that was generated, reasoning included.
        reasoning: the part of `output` that is reasoning.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int:
        """Input and output together; what is unknown counts as nothing."""
        return (self.input or 0) + (self.output or 0)

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            _add(self.input, other.input),
            _add(self.output, other.output),
            _add(self.cache_read, other.cache_read),
            _add(self.cache_write, other.cache_write),
            _add(self.reasoning, other.reasoning),
        )

    def overlaid(self, later: "Usage") -> "Usage":
        """The later report wins, field by field, where it says something (R-USAGE-2)."""
        return Usage(
            self.input if later.input is None else later.input,
            self.output if later.output is None else later.output,
            self.cache_read if later.cache_read is None else later.cache_read,
            self.cache_write if later.cache_write is None else later.cache_write,
            self.reasoning if later.reasoning is None else later.reasoning,
        )


def _add(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b
