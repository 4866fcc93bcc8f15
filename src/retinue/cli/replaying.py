"""`retinue replay`: a recorded turn is run again without and with what has changed, and compared.

The requests of a turn are not in the log, so there is nothing to compare a new request with. The
turn is run twice instead, on the same recorded answers: on a base, and on what has changed.
"""

from typing import Any, Final

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from retinue.agent import Agent
from retinue.cli.conversations import Opened
from retinue.cli.keeping import is_memory, let_go, store_of
from retinue.cli.plain import print_json
from retinue.cli.target import onion_of
from retinue.cli.timeline import named
from retinue.cli.wording import count_words, cut, safe
from retinue.errors import ConfigError
from retinue.models.scripted import Scripted
from retinue.stores import Store, Timeline
from retinue.testing.differences import (
    GONE,
    NEW,
    Change,
    differences,
    message_lines,
    request_lines,
)
from retinue.testing.replay import Recording, Replay, replay

_WIDTH: Final = 400
"""Characters of a line that are shown."""

_STYLES: Final = {GONE: "red", NEW: "green"}

_UNKNOWN: Final = (
    "Not in the log, and so not replayed: the data, context, state and settings that the caller"
    " gave, what tools wrote to the state, inner turns of sub-agents, and calls to a model on the"
    " side. Nothing was written to the store."
)


class Pair(Struct, frozen=True):
    """What a turn is run on: the base, and what has changed, or None to look at the base alone."""

    base: Agent
    base_name: str
    changed: Agent | None = None
    changed_name: str = ""


async def show_replay(
    database: str | None,
    conversation: str,
    turn: str | None,
    owner: str | None,
    *,
    base: str | None,
    advisors: str | None,
    as_json: bool,
) -> None:
    """Replays a turn and prints what differs; without `advisors`, what the base is sent.

    Args:
        database: where it is kept; by default where an agent with a memory of its own keeps it,
            or the user's own file.
        conversation, owner: the conversation.
        turn: the turn, by its id or its number; by default the last.
        base: the agent that the turn ran on. By default the changed agent without its advisors, or
            where these come alone, a bare agent.
        advisors: the changed agent, or the changed advisors for the base.
        as_json: whether it is printed as one JSON object.

    Raises:
        ConfigError: a target names nothing that fits, or the turn has no answer.
        ConversationNotFound: there is no such conversation for this owner.
    """
    pair = _pair(base, advisors)
    agents = [pair.base] if pair.changed is None else [pair.base, pair.changed]
    try:
        recording = await _recorded(database, agents, conversation, turn, owner)
        runs = [await replay(recording, agent) for agent in agents]
    finally:
        for agent in agents:
            await let_go(agent)
    changes = differences(*runs) if len(runs) == 2 else ()
    if as_json:
        print_json(_as_data(recording, pair, runs, changes))
        return
    _print(recording, pair, runs, changes)


def _pair(base: str | None, advisors: str | None) -> Pair:
    given = None if base is None else _agent(base)
    changed = None if advisors is None else onion_of(advisors)
    name = advisors or ""
    if isinstance(changed, Agent):
        if given is None:
            plain = changed.with_(advisors=list(filter(is_memory, changed.advisors)))
            return Pair(plain, f"{name} without its advisors", changed, name)
        return Pair(given, base or "", changed, name)
    if given is None:
        given, base = Agent(Scripted(), name="plain"), "a plain agent"
    if changed is None:
        return Pair(given, base or "")
    kept = [] if any(map(is_memory, changed)) else list(filter(is_memory, given.advisors))
    return Pair(given, base or "", given.with_(advisors=[*kept, *changed]), name)


def _agent(target: str) -> Agent:
    found = onion_of(target)
    if isinstance(found, Agent):
        return found
    raise ConfigError(f"--base {target!r} names advisors; the base is an agent.")


async def _recorded(
    database: str | None,
    agents: list[Agent],
    conversation: str,
    turn: str | None,
    owner: str | None,
) -> Recording:
    store = next((own for agent in agents if (own := store_of(agent)) is not None), None)
    if database is None and store is not None:
        return await _read(store, conversation, turn, owner)
    async with Opened(database) as opened:
        return await _read(opened, conversation, turn, owner)


async def _read(store: Store, conversation: str, turn: str | None, owner: str | None) -> Recording:
    if turn is not None:
        turn = named(await Timeline(store).points(conversation, owner=owner), turn).turn
    return await Recording.of(store, conversation, turn, owner=owner)


def _as_data(
    recording: Recording, pair: Pair, runs: list[Replay], changes: tuple[Change, ...]
) -> dict[str, Any]:
    names = [pair.base_name, pair.changed_name]
    return {
        "conversation": recording.conversation,
        "turn": recording.turn,
        "runs": [
            {
                "agent": name,
                "status": run.status,
                "text": run.text,
                "reason": run.reason,
                "requests": [request_lines(request) for request in run.requests],
                "calls": run.calls,
                "unasked": run.unasked,
                "aside": run.aside,
            }
            for name, run in zip(names, runs, strict=False)
        ],
        "as_recorded": _as_recorded(recording, runs[0]),
        "differences": changes,
    }


def _as_recorded(recording: Recording, run: Replay) -> bool:
    """Whether a run has left the messages that are in the log."""
    left, logged = (
        [message_lines(message) for message in messages]
        for messages in (run.messages, recording.messages)
    )
    return left == logged


def _print(
    recording: Recording, pair: Pair, runs: list[Replay], changes: tuple[Change, ...]
) -> None:
    console = Console()

    def say(text: str, style: str = "") -> None:
        console.print(Text(cut(text, _WIDTH), style), highlight=False, soft_wrap=True)

    question = " ".join(message.text for message in recording.question)
    answers = count_words(len(recording.answers), "answer")
    results = count_words(len(recording.results), "result")
    say(f"Turn {recording.turn} of {recording.conversation}: {question}", "bold")
    say(f"Recorded: {answers} of the model, {results} of tools.")
    for name, run in zip([pair.base_name, pair.changed_name], runs, strict=False):
        say(f"{name}: {_ending(run)}")
    if not _as_recorded(recording, runs[0]):
        say(f"{pair.base_name} does not give the turn that was recorded.", "yellow")
    say("")
    if pair.changed is None:
        _print_requests(console, runs[0])
    elif not changes:
        say("Nothing differs: not in a request, not in a call, not in the answer.")
    for change in changes:
        say(f"{change.where}, {change.what}", "bold")
        _print_lines(console, change.lines)
    say("")
    console.print(Text(_UNKNOWN, "dim"), highlight=False, soft_wrap=True)


def _ending(run: Replay) -> str:
    said = [f"{run.status}, {count_words(len(run.requests), 'model call')}"]
    if run.unasked:
        said.append(f"{count_words(run.unasked, 'recorded answer')} not asked for")
    if run.aside:
        said.append(f"{count_words(run.aside, 'call')} on the side not answered")
    return ", ".join(said) + (f". {run.reason}" if run.reason else "")


def _print_requests(console: Console, run: Replay) -> None:
    for number, request in enumerate(run.requests, 1):
        for what, lines in request_lines(request).items():
            if lines:
                head = Text(f"model call {number}, {what}", "bold")
                console.print(head, highlight=False)
                _print_lines(console, tuple(f"  {line}" for line in lines))


def _print_lines(console: Console, lines: tuple[str, ...]) -> None:
    for line in lines:
        shown = safe(line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…")
        style = _STYLES.get(line[:2], "")
        console.print(Text(f"  {shown}", style), highlight=False, soft_wrap=True)
