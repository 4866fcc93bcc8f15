"""An answer that the vendor pauses, and goes on with when it is sent back.

It pauses where tools of its own have run for long (stop reason "pause_turn"). To everybody above,
the parts are one answer: text follows text, tokens add up, and the end is the end of the last one.
"""

from collections import Counter
from typing import Any, Final

from msgspec import structs

from retinue.chains.requests import ChatRequest
from retinue.chains.settings import Settings
from retinue.messages import Accumulator, Delta, FinishDelta, Usage, UsageDelta
from retinue.models.anthropic.messages import PAUSED, PROVIDER
from retinue.models.base import Send
from retinue.models.loose import a_list, an_object

MOST: Final = 10
"""Times that one answer is sent back. One that is paused once more ends with "pause_turn", and goes
on when the conversation is sent again."""


class AnswerInParts:
    """Hands on the deltas of one answer, whatever the number of its parts.

    Args:
        request: what is asked.
        send: takes the deltas.

    Attributes:
        is_paused: whether what has come is to be sent back.
        meta: what the provider said besides, in all parts.
    """

    __slots__ = ("_counted", "_request", "_said", "_send", "_spent", "_times", "is_paused", "meta")

    def __init__(self, request: ChatRequest, send: Send) -> None:
        self._request = request
        self._send = send
        self._said = Accumulator()  # of all parts: tools that one begins end in another
        self._spent = Usage()  # by the parts before this one
        self._counted = Usage()  # by this one
        self._times = 0
        self.is_paused = False
        self.meta: dict[str, Any] = {}

    async def __call__(self, delta: Delta) -> None:
        """Takes one delta of the part that comes."""
        self._said.add(delta)
        if isinstance(delta, UsageDelta):
            self._counted = self._counted.overlaid(delta.usage)
            delta = UsageDelta(self._spent + self._counted)
        elif isinstance(delta, FinishDelta) and delta.reason == PAUSED:
            # A call of a tool of ours must be answered before the vendor goes on.
            called = bool(self._said.message().tool_calls)
            self.is_paused = self._times < MOST and not called
            if self.is_paused:
                return
        await self._send(delta)

    def note(self, meta: dict[str, Any]) -> None:
        """Takes what was said beside the part; lists and counts join those of the others."""
        before, self.meta = self.meta, self.meta | meta
        for name in ("citations", "iterations"):
            if listed := [*a_list(before.get(name)), *a_list(meta.get(name))]:
                self.meta[name] = listed
        counts = Counter(an_object(before.get("server_tool_use")))
        counts.update(an_object(meta.get("server_tool_use")))
        if counts:
            self.meta["server_tool_use"] = dict(counts)

    def sent_back(self) -> ChatRequest:
        """The request for the next part."""
        self._times += 1
        self._spent += self._counted
        self._counted = Usage()
        self.is_paused = False
        request = self._request
        said = self._said.message(provider=PROVIDER)
        return request.with_(
            messages=(*request.messages, said), settings=self._in_container(request.settings)
        )

    def _in_container(self, settings: Settings) -> Settings:
        """The settings with the container in which code of the vendor's has begun to run."""
        container = an_object(self.meta.get("container")).get("id")
        if not container:
            return settings
        given = an_object(settings.extra.get("container"))  # what it is to hold, such as skills
        named = {**given, "id": container} if given else container
        return structs.replace(settings, extra={**settings.extra, "container": named})
