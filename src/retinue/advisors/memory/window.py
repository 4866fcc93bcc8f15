"""How much of a conversation a model call may be sent."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from retinue.advisors.memory.summary import ASKED
from retinue.chains import ChatRequest
from retinue.chains.weight import frame_tokens
from retinue.errors import ConfigError
from retinue.messages import Message
from retinue.messages.estimate import FRAME, message_tokens
from retinue.messages.window import Size

_PAGE: Final = 64  # entries read at once where the window is by tokens


class Limit(Struct, frozen=True):
    """What the messages of one call must fit into.

    Attributes:
        room: how much there is.
        size: what a message weighs.
        summary: what a summary will weigh, with the question before it.
    """

    room: int
    size: Size
    summary: int


class Window:
    """A window by messages, by tokens, by both or by neither.

    Args:
        max_messages, max_tokens, reserve, count: as for `Memory`.
        summary: tokens of a summary in it.

    Attributes:
        page: how many entries of a log are worth reading at once; None is all.
    """

    def __init__(
        self,
        max_messages: int | None,
        max_tokens: int | None,
        reserve: int,
        count: Callable[[str], int],
        summary: int = 0,
    ) -> None:
        for name, value in (("max_messages", max_messages), ("max_tokens", max_tokens)):
            if value is not None and (type(value) is not int or value < 1):
                raise ConfigError(
                    f"Memory({name}={value!r}): a window holds at least 1, or is None."
                )
        if type(reserve) is not int or reserve < 0:
            raise ConfigError(f"Memory(reserve={reserve!r}): give 0 tokens or more.")
        if max_tokens is not None and reserve >= max_tokens:
            raise ConfigError(
                f"Memory(max_tokens={max_tokens}, reserve={reserve}): nothing is left for the"
                " conversation; lower the reserve."
            )
        self._max_messages = max_messages
        self._max_tokens = max_tokens
        self._reserve = reserve
        self._count = count
        self._summary = summary
        self.page: int | None = None
        if max_messages is not None or max_tokens is not None:
            self.page = min(max_messages or _PAGE, 4 * _PAGE) + 1

    @property
    def tokens(self) -> int | None:
        """Tokens that there are for the prompt, or None for any number."""
        return None if self._max_tokens is None else self._max_tokens - self._reserve

    def limits(self, request: ChatRequest) -> list[Limit]:
        """What the messages of a call must fit into."""
        found: list[Limit] = []
        if self._max_messages is not None and len(request.messages) > self._max_messages:
            found.append(Limit(self._max_messages, _one, 2))
        if self.tokens is not None:
            room = self.tokens - frame_tokens(request, self._count)
            summary = self._summary + self._count(ASKED) + 2 * FRAME
            found.append(Limit(room, self._tokens_of, summary))
        return found

    def is_filled(self, history: Sequence[Message], times: int = 1) -> bool:
        """Whether these messages would fill it so many times."""
        if self._max_messages is not None and len(history) >= times * self._max_messages:
            return True
        return self._max_tokens is not None and (
            sum(map(self._tokens_of, history)) >= times * self._max_tokens
        )

    def _tokens_of(self, message: Message) -> int:
        return message_tokens(message, self._count)


def _one(_: Message) -> int:
    return 1
