"""Runs a recorded turn again, with the answers of model and tools that its log has.

    recording = await Recording.of(store, "c-1")
    before = await replay(recording, agent)
    after = await replay(recording, agent.with_(advisors=[...]))
    for change in differences(before, after): ...

So a changed advisor can be seen at work on a turn that really happened, at no cost. Models are not
asked, tools do not run, and nothing is written to the store: the conversation is copied into
memory. Advisors do run, and what they do outside the turn (a search, a log file) they do again.

The log has what was said, not what was sent. What it does not hold is not replayed: the data,
context, state and settings that the caller gave (give them to `replay`), what tools wrote to the
state, the inner turns of sub-agents, and calls to a model on the side. Where a layer has changed an
answer or a result before it was stored, the changed one is given. Messages that were given up
after the turn are not sent, though they were sent then. A layer that asks the model more often than
it was asked gets no answer: the replay ends there and says so.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Final

from msgspec import Struct

from retinue.advisors import Memory
from retinue.agent import Agent
from retinue.chains import (
    CallNext,
    ChatRequest,
    ChatResponse,
    Layer,
    ToolRequest,
    TurnRequest,
    TurnResponse,
    name_of,
)
from retinue.errors import ConfigError, ModelRefused
from retinue.messages import (
    Delta,
    FinishDelta,
    Message,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    UsageDelta,
)
from retinue.models import Model
from retinue.models.base import Send
from retinue.models.capabilities import UNKNOWN
from retinue.stores import Entry, InMemory, Store
from retinue.stores.rules import not_found, quoted
from retinue.stores.views import in_turns
from retinue.tools import ToolResponse

_MADE_UP: Final = ("healed", "summary")
"""Origins of messages that were no part of the turn when it ran."""


class Recording(Struct, frozen=True, kw_only=True):
    """One turn as the log has it, and what came before it.

    Attributes:
        conversation: the id of the conversation.
        owner: whose it is.
        turn: the id of the turn.
        before: the log up to the turn.
        messages: the messages of the turn, those that were given up on the way included.
    """

    conversation: str
    owner: str | None
    turn: str
    before: tuple[Entry, ...]
    messages: tuple[Message, ...]

    @classmethod
    async def of(
        cls, store: Store, conversation: str, turn: str | None = None, *, owner: str | None = None
    ) -> "Recording":
        """Reads a turn from a store.

        Args:
            store: where the conversation is; nothing is written to it.
            conversation: its id.
            turn: the id of the turn; the last one by default.
            owner: whose conversation it is.

        Raises:
            ConfigError: it has no such turn, or no model has answered in it.
            ConversationNotFound: there is none for this owner.
        """
        entries = await store.tail(conversation, owner=owner)
        if not entries:
            raise not_found(conversation)
        turn = entries[-1].turn if turn is None else turn
        own = next((one for one in in_turns(entries) if any(e.turn == turn for e in one)), None)
        if own is None:
            raise ConfigError(
                f"Conversation {quoted(conversation)} has no turn {quoted(turn)}; the last is"
                f" {quoted(entries[-1].turn)}."
            )
        recording = cls(
            conversation=conversation,
            owner=owner,
            turn=turn,
            before=tuple(entry for entry in entries if entry.position < own[0].position),
            messages=tuple(e.message for e in own if e.message.origin not in _MADE_UP),
        )
        if not recording.answers or not recording.question:
            raise ConfigError(
                f"No model has answered in turn {quoted(turn)} of conversation"
                f" {quoted(conversation)}, so there is nothing to replay."
            )
        return recording

    @property
    def question(self) -> tuple[Message, ...]:
        """What was asked."""
        return tuple(takewhile(lambda m: m.role in ("user", "system"), self.messages))

    @property
    def answers(self) -> tuple[Message, ...]:
        """What models said, in order; not what layers said in their place."""
        return tuple(m for m in self.messages if m.role == "assistant" and m.model is not None)

    @property
    def results(self) -> Mapping[str, ToolResult]:
        """What came of the calls, by call id."""
        return {one.call_id: one for message in self.messages for one in message.tool_results}

    async def restored(self) -> Store:
        """A store in memory that holds what came before the turn."""
        store = InMemory()
        for turn, group in groupby(self.before, key=lambda entry: entry.turn):
            entries = list(group)
            await store.append(
                self.conversation,
                [entry.message for entry in entries],
                turn=turn,
                owner=self.owner,
                states={entry.message.id: entry.state for entry in entries},
            )
        return store


class Replay(Struct, frozen=True, kw_only=True):
    """What came of running a recorded turn again.

    Attributes:
        requests: what the model was sent, call by call.
        calls: the tool calls as they reached the tools: name and arguments.
        messages: the messages of the turn; those so far, where it did not end.
        status: how the turn ended; "unrecorded" where it asked for what the recording lacks, and
            "failed" where a layer raised.
        text: the final answer.
        reason: why it ended so.
        unasked: answers of the recording that were not asked for.
        aside: calls to a model on the side, which got no answer.
    """

    requests: tuple[ChatRequest, ...]
    calls: tuple[tuple[str, Mapping[str, Any] | None], ...]
    messages: tuple[Message, ...]
    status: str
    text: str
    reason: str | None
    unasked: int
    aside: int


async def replay(recording: Recording, agent: Agent, **options: Any) -> Replay:
    """Runs the turn again on an agent, whose model, tools, gate and store are replaced.

    Args:
        recording: the turn.
        agent: whose instructions, tools on offer, advisors and limits take part. Calls are not
            asked about: what came of them is in the recording.
        options: what `Agent.run` takes beside the question: `data`, `context`, `state`, `settings`
            and `output`.

    Raises:
        ConfigError: the agent has a memory of another kind, or an option cannot be used.
    """
    tape = _Tape(recording, agent.model)
    on_tape = agent.with_(
        model=tape,
        gate=None,
        advisors=[
            Layer("Replay", turn=tape.turn),
            *_remembering(agent.advisors, await recording.restored()),
            Layer("Recording", chat=tape.chat, tool=tape.tool),
        ],
    )
    status, reason = "failed", ""
    turn = on_tape.stream(
        recording.question, conversation=recording.conversation, owner=recording.owner, **options
    )
    try:
        ended = await turn.result()
        status, reason = str(ended.status), ended.reason or ""
    except ConfigError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
    outcome = turn.outcome
    if tape.lacks:
        status, reason = "unrecorded", tape.lacks
    return Replay(
        requests=tuple(tape.requests),
        calls=tuple(tape.calls),
        messages=() if outcome is None else outcome.messages,
        status=status,
        text="" if outcome is None else outcome.text,
        reason=reason or None,
        unasked=max(0, len(recording.answers) - tape.asked),
        aside=tape.aside,
    )


def _remembering(advisors: Sequence[object], store: Store) -> list[object]:
    """The advisors with the store in the place of their own; a memory is put on if there is none.

    Raises:
        ConfigError: their memory is none that can be pointed elsewhere.
    """
    found: list[object] = []
    has_memory = False
    for advisor in advisors:
        if isinstance(advisor, Memory):
            has_memory, advisor = True, copy.copy(advisor)
            advisor.store = store
        elif "memory" in getattr(advisor, "traits", ()):
            raise ConfigError(
                f"{name_of(advisor)} keeps conversations in a way of its own, and a replay must not"
                " write; give an agent with Memory(...), or with no memory."
            )
        found.append(advisor)
    return found if has_memory else [Memory(store), *found]


class _Tape:
    """The recorded model, and the layers that stand for the tools and watch.

    It is innermost, so that what it sees is what would have been sent.
    """

    def __init__(self, recording: Recording, model: Model) -> None:
        self.name = model.name
        self.provider = model.provider
        self.capabilities = getattr(model, "capabilities", UNKNOWN)
        self.requests: list[ChatRequest] = []
        self.calls: list[tuple[str, Mapping[str, Any] | None]] = []
        self.asked = 0
        self.aside = 0
        self.lacks = ""
        self._answers = recording.answers
        self._results = recording.results

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Gives the next recorded answer.

        Raises:
            ModelRefused: there is none.
        """
        self.asked += 1
        if self.asked > len(self._answers):
            self.lacks = (
                f"The recording has {len(self._answers)} answers of the model and none to its call"
                f" {self.asked}: what comes after that is not known."
            )
            raise ModelRefused(self.lacks)
        for delta in _deltas(self._answers[self.asked - 1]):
            await send(delta)
        return None

    async def close(self) -> None:
        """Nothing is held."""

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Calls on the side have no answer in the log, and must not take the turn's own."""
        request.scope.consult = self._consult
        return await call_next(request)

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Notes what is sent. The recorded model answers, whichever a layer has chosen."""
        self.requests.append(request)
        tools = [tool.with_(asks=None) if tool.asks else tool for tool in request.tools]
        return await call_next(request.with_(model=None, tools=tools))

    async def tool(
        self, request: ToolRequest, call_next: CallNext[ToolRequest, ToolResponse]
    ) -> ToolResponse:
        """Gives the recorded result in place of running anything."""
        self.calls.append((request.call.name, request.arguments))
        result = self._results.get(request.call.id)
        if result is None:
            return request.refuse("The recording has no result of this call.")
        return ToolResponse(result=result, failure=None if result.ok else "semantic")

    async def _consult(self, *_: Any) -> ChatResponse:
        self.aside += 1
        raise ModelRefused("What a model said on the side is not in the log, so a replay lacks it.")


def _deltas(answer: Message) -> Iterator[Delta]:
    index = 0
    for part in answer.parts:
        if isinstance(part, Thinking):
            yield ThinkingDelta(part.text, part.signature, part.opaque)
        elif isinstance(part, Text):
            yield TextDelta(part.text)
        elif isinstance(part, ToolCall):
            yield ToolCallDelta(index, part.id, part.name, part.arguments)
            index += 1
    if answer.usage is not None:
        yield UsageDelta(answer.usage)
    yield FinishDelta(answer.finish or ("tool_calls" if answer.tool_calls else "stop"))
