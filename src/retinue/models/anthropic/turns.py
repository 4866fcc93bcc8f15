"""A conversation as the Messages format has it: turns of user and assistant, one after the other.

Messages of one role in a row are one turn. In it tool results come first. The first turn is the
user's, ids of calls are never used twice, and system messages that stand before all others belong
to the instructions.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from retinue.messages import Message
from retinue.models.anthropic.messages import (
    PAUSED,
    PROVIDER,
    Encoded,
    MessageEncoder,
    sent_id,
)
from retinue.models.outgoing import system_text, to_json

_OPENING: Final = Encoded(
    "user", blocks=(to_json({"type": "text", "text": "[The conversation begins here.]"}),)
)
_START: Final = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
}


class Turn(Struct):
    """What one side says before the other does.

    Attributes:
        messages: what was said, in order.
        changed: the content in place of theirs, for a request that needs it otherwise.
    """

    messages: list[Encoded]
    changed: list[bytes] | None = None

    @property
    def role(self) -> str:
        """Whose turn it is."""
        return self.messages[0].role

    @property
    def content(self) -> Sequence[bytes]:
        """All blocks, tool results first."""
        if self.changed is not None:
            return self.changed
        said = self.messages
        if len(said) == 1:  # nearly all turns
            return said[0].results + said[0].blocks
        results = [block for message in said for block in message.results]
        return results + [block for message in said for block in message.blocks]

    @property
    def holds_results_alone(self) -> bool:
        """Whether the user says nothing in it but what tools gave."""
        return not any(message.blocks for message in self.messages)

    def change(self) -> list[bytes]:
        """The content, to be changed for this request."""
        if self.changed is None:
            self.changed = list(self.content)
        return self.changed

    def written(self) -> tuple[bytes, bytes, bytes]:
        """The turn as JSON, in pieces."""
        return _START[self.role], b",".join(self.content), b"]}"


class Conversation(Struct):
    """The turns, and the system texts that stood before them."""

    system: list[str]
    turns: list[Turn]

    def tools(self) -> list[str]:
        """The names of the tools that were called, each once."""
        said = (message for turn in self.turns for message in turn.messages)
        return list(dict.fromkeys(name for message in said for name in message.tools))


def conversation(messages: Sequence[Message], encoder: MessageEncoder) -> Conversation:
    """The messages as turns.

    Raises:
        ConfigError: a message holds a part that the model does not take there.
    """
    start = 0
    system: list[str] = []
    while start < len(messages) and messages[start].role == "system":
        text = system_text(messages[start], PROVIDER)
        system += [text] if text else []
        start += 1
    turns: list[Turn] = []
    role = ""
    ids = _Ids(encoder)
    for message in messages[start:]:
        said = encoder.encoded(message)
        if said.calls or (said.results and ids.renamed):
            said = ids.told_apart(message, said)
        if message is messages[-1] and message.finish == PAUSED:
            said = encoder.encode(message, paused=True)
        if not (said.blocks or said.results):
            continue  # an empty message says nothing, and the vendor refuses it
        if said.role == role:
            turns[-1].messages.append(said)
        else:
            role = said.role
            turns.append(Turn([said]))
    if turns and turns[0].role == "assistant":
        turns.insert(0, Turn([_OPENING]))
    return Conversation(system, turns)


class _Ids:
    """Ids of calls so far. Some providers use one again in every round; this vendor may not."""

    __slots__ = ("_encoder", "_seen", "renamed")

    def __init__(self, encoder: MessageEncoder) -> None:
        self._encoder = encoder
        self._seen: set[str] = set()
        self.renamed: dict[str, str] = {}  # of the calls whose results come next

    def told_apart(self, message: Message, said: Encoded) -> Encoded:
        """The message with ids that no call before has; most have them already."""
        if said.calls:
            self.renamed = {} if self._seen.isdisjoint(said.calls) else self._renamed(said)
            if self.renamed:
                said = self._encoder.encode(message, self.renamed)
            self._seen.update(said.calls)
        elif any(sent_id(result.call_id) in self.renamed for result in message.tool_results):
            said = self._encoder.encode(message, self.renamed)
        return said

    def _renamed(self, said: Encoded) -> dict[str, str]:
        names: dict[str, str] = {}
        for call_id in self._seen.intersection(said.calls):
            number = 2
            while f"{call_id}_{number}" in self._seen:
                number += 1
            names[call_id] = f"{call_id}_{number}"
        return names
