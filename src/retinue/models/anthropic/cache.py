"""Cache breakpoints: where the vendor is to remember the prompt up to that block.

The prompt is cached from its start: tools, then system, then messages. At most four blocks of a
request may carry a mark, and a request finds what an earlier one wrote only at a mark near the
end of what they share.
"""

from typing import Final, Literal, get_args

from retinue.errors import ConfigError
from retinue.models.anthropic.turns import Turn

Cache = Literal["auto", "none", "system", "tools", "conversation"]
"""What is marked: nothing, the instructions, the tools, the messages, or what is likely to return.

"auto" marks tools and instructions, and the conversation where it is one: where tools are on
offer, or something has been said before. A question alone is not marked, as writing costs more
than reading.
"""

BREAKPOINTS: Final = 4
"""Marks that the vendor takes in one request."""

_MARK: Final = b',"cache_control":{"type":"ephemeral"}}'


def check_strategy(cache: str) -> None:
    """Refuses a word that is no strategy.

    Raises:
        ConfigError: names it and those that are.
    """
    if cache not in get_args(Cache):
        raise ConfigError(f"cache must be one of {', '.join(get_args(Cache))}, not {cache!r}.")


def place_marks(
    strategy: Cache, tools: list[bytes], system: list[bytes], turns: list[Turn], taken: int = 0
) -> None:
    """Marks blocks of the request in place.

    Args:
        strategy: what to mark.
        tools: tools as JSON objects.
        system: system blocks, the stable ones first.
        turns: the conversation.
        taken: marks that the user has set.
    """
    places: list[tuple[list[bytes], int]] = []
    if strategy in ("tools", "auto") and tools:
        places.append((tools, -1))
    if strategy in ("system", "auto") and system:
        places.append((system, 0))
        if len(system) > 1 and strategy == "system":
            places.append((system, -1))
    goes_on = bool(tools) or len(turns) > 1
    if strategy == "conversation" or (strategy == "auto" and goes_on):
        # The last turn is written; at the one before it, what the last request wrote is found,
        # however many blocks have come since.
        asked = [turn for turn in turns[-3:] if turn.role == "user"]
        places += [(turn.change(), -1) for turn in reversed(asked[-2:])]
    places = [(blocks, at) for blocks, at in places if not is_marked(blocks[at])]
    for blocks, at in places[: max(0, BREAKPOINTS - taken)]:
        blocks[at] = blocks[at][:-1] + _MARK


def is_marked(block: bytes) -> bool:
    """Whether the block, or one within it, carries a mark already."""
    return b'"cache_control":' in block
