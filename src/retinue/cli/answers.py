"""The calls of a paused turn in words, and answers read from words (R-HITL-3). No terminal here.

A line that answers begins with a word, which may be cut short as long as it is plain:

    approval     approve · approve {"its": "arguments"} · reject REASON · reply TEXT
    question     the answer itself · /reject REASON
    external     result TEXT · cancel REASON
    environment  retry · proceed

`later` (for a question `/later`) leaves a call as it is. Reasons may be left out.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from retinue.cli import places
from retinue.cli.wording import count_words, cut, safe
from retinue.errors import ConfigError
from retinue.tools import Answer, Approve, PendingCall, Proceed, Reject, Reply, Retry, Tool
from retinue.tools.asking import UNDER, Kind, check_arguments
from retinue.tools.schema import ArgumentsError

LATER: Final = "later"
EDIT: Final = "edit"
"""Asks for the arguments to be edited; only whoever has a terminal offers it."""

_REJECTED: Final = "A person rejected this call."
_CANCELLED: Final = "This call was not run: it was cancelled."


def _approve(text: str) -> Answer:
    return Approve(arguments_in(text)) if text else Approve()


def _reject(text: str) -> Answer:
    return Reject(text or _REJECTED)


def _cancel(text: str) -> Answer:
    return Reject(text or _CANCELLED)


def _reply(text: str) -> Answer:
    if not text:
        raise ConfigError("A reply says something; put it on the same line.")
    return Reply(text)


def _retry(text: str) -> Answer:
    return _alone("retry", Retry(), text)


def _proceed(text: str) -> Answer:
    return _alone("proceed", Proceed(), text)


def _alone(word: str, answer: Answer, text: str) -> Answer:
    if text:
        raise ConfigError(f"Nothing comes after {word}; {cut(text, 40)!r} was given.")
    return answer


_WORDS: Final[Mapping[Kind, Mapping[str, tuple[str, Callable[[str], Answer]]]]] = {
    "approval": {
        "approve": ("approve", _approve),
        "reject": ("reject REASON", _reject),
        "reply": ("reply TEXT", _reply),
    },
    "question": {"/reject": ("/reject REASON", _reject)},
    "external": {"result": ("result TEXT", _reply), "cancel": ("cancel REASON", _cancel)},
    "environment": {"retry": ("retry", _retry), "proceed": ("proceed", _proceed)},
}
"""What can be said of a call of each kind: how it is written, and what it means."""


def read_answer(call: PendingCall, line: str) -> Answer | None:
    """The answer that a line gives to a call; None to leave it as it is.

    Raises:
        ConfigError: the line is no answer; says what is.
    """
    line = line.strip()
    word, _, rest = line.partition(" ")
    if call.kind == "question" and not line.startswith("/"):
        return _reply(line)
    words = _WORDS[call.kind]
    meant = [one for one in (*words, _later(call)) if word and one.startswith(word)]
    if len(meant) != 1:
        raise ConfigError(f"{cut(word, 40)!r} is no answer; say {choices(call)}.")
    return None if meant[0] == _later(call) else words[meant[0]][1](rest.strip())


def choices(call: PendingCall, *, edits: bool = False) -> str:
    """What can be said of a call.

    Args:
        call: the call.
        edits: whether its arguments can be edited.
    """
    said = [usage for usage, _ in _WORDS[call.kind].values()]
    if call.kind == "question":
        said.insert(0, "the answer")
    elif call.kind == "approval":
        said.insert(1, EDIT if edits else "approve JSON")
    return f"{', '.join(said)} or {_later(call)}"


def arguments_in(text: str) -> dict[str, Any]:
    """The arguments that a text holds as JSON.

    Raises:
        ConfigError: it is no JSON object.
    """
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"The arguments are no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ConfigError(
            f'The arguments are a JSON object, {{"name": value}}; not {cut(text, 40)}.'
        )
    return found  # pyright: ignore[reportUnknownVariableType]


def check_edited(call: PendingCall, answer: Answer | None, tools: Sequence[Tool]) -> None:
    """Refuses edited arguments that the tool would refuse.

    Raises:
        ConfigError: says what does not fit.
    """
    if not isinstance(answer, Approve) or answer.args is None:
        return
    try:
        check_arguments(call, answer.args, tools)
    except ArgumentsError as error:
        raise ConfigError(str(error)) from None


def written(arguments: Mapping[str, Any] | None) -> str:
    """Arguments as JSON to read and to edit."""
    return msgspec.json.format(msgspec.json.encode(arguments or {}), indent=2).decode()


def waiting_lines(call: PendingCall) -> list[str]:
    """A call that waits, to be read by whoever answers: what it is, why, and its arguments."""
    asked = (call.arguments or {}).get("question")
    inside = " of a sub-agent" if UNDER in call.id else ""
    head = f"{cut(call.tool, 60)}{inside} waits ({call.kind}): {safe(call.why)}"
    if call.kind == "question" and isinstance(asked, str):
        return [head, *_indented(asked)]
    return [head, *_indented(written(call.arguments))]


def pending_lines(calls: Sequence[PendingCall]) -> list[str]:
    """Calls that wait, each with its id and the options of `retinue resume` that answer it."""
    lines = [f"The turn waits for {count_words(len(calls), 'answer')}:"]
    for call in calls:
        lines += [safe(call.id), *_indented("\n".join(waiting_lines(call)))]
        lines += _indented(_OPTIONS[call.kind])
    return lines


_OPTIONS: Final[Mapping[Kind, str]] = {
    "approval": "--approve ID [--args JSON], --reject ID=REASON or --reply ID=TEXT",
    "question": "--reply ID=TEXT or --reject ID=REASON",
    "external": "--reply ID=RESULT or --reject ID=REASON",
    "environment": "--retry ID or --proceed ID",
}


class Given(Struct, frozen=True):
    """The answers that stand on a command line.

    Attributes:
        approve: ids of calls that may run.
        args: for each of them, in the same order, the arguments as JSON; or none at all.
        reject, reply: "ID=TEXT"; a reason may be left out.
        retry, proceed: ids of calls that failed.
        every: whether all calls that wait for approval, and stand nowhere else, are approved.
    """

    approve: Sequence[str] = ()
    args: Sequence[str] = ()
    reject: Sequence[str] = ()
    reply: Sequence[str] = ()
    retry: Sequence[str] = ()
    proceed: Sequence[str] = ()
    every: bool = False

    @property
    def any(self) -> bool:
        """Whether anything is answered."""
        return self.every or any(
            (self.approve, self.args, self.reject, self.reply, self.retry, self.proceed)
        )

    def answers(self, calls: Sequence[PendingCall]) -> dict[str, Answer]:
        """The answers by the ids of calls. That the calls wait is for the agent to check.

        Raises:
            ConfigError: an id is answered twice, arguments belong to nothing, or `every` to no one.
        """
        if self.args and len(self.args) != len(self.approve):
            raise ConfigError(
                f"--args stands {len(self.args)} times and --approve {len(self.approve)} times;"
                " give each --approve its --args, in the same order, or answer one call at a time."
            )
        edited = [Approve(arguments_in(text)) for text in self.args]
        pairs: list[tuple[str, Answer]] = [
            *zip(self.approve, edited or [Approve()] * len(self.approve), strict=True),
            *((name, _reject(text)) for name, text in _split(self.reject, calls)),
            *((name, _reply(text)) for name, text in _split(self.reply, calls)),
            *((name, Retry()) for name in self.retry),
            *((name, Proceed()) for name in self.proceed),
        ]
        answers: dict[str, Answer] = {}
        for name, answer in pairs:
            if name in answers:
                raise ConfigError(f"The call {name!r} is answered twice; answer it once.")
            answers[name] = answer
        if self.every:
            asking = [one.id for one in calls if one.kind == "approval" and one.id not in answers]
            if not asking:
                raise ConfigError(
                    "--all approves calls, and none waits for approval; leave it out."
                )
            answers |= dict.fromkeys(asking, Approve())
        return answers


def resume_command(
    conversation: str,
    *,
    target: str | None,
    model: str | None,
    database: str | None,
    owner: str | None,
) -> str:
    """The command that goes on with a conversation, to be typed into a shell."""
    words = ["retinue", "resume", conversation, *([target] if target else ())]
    shown = None if database is None else places.without_login(database)
    options = {"--model": model, "--database": shown, "--owner": owner}
    for option, value in options.items():
        words += [option, str(value)] if value is not None else []
    return safe(shlex.join(words))


def _split(given: Sequence[str], calls: Sequence[PendingCall]) -> Iterator[tuple[str, str]]:
    """Ids and texts apart; an id may hold a "=" itself."""
    for one in given:
        ids = [call.id for call in calls if one == call.id or one.startswith(f"{call.id}=")]
        name = max(ids, key=len, default=one.partition("=")[0])
        yield name, one[len(name) + 1 :].strip()


def _later(call: PendingCall) -> str:
    return f"/{LATER}" if call.kind == "question" else LATER


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in safe(text).splitlines()]
