"""The advisor.

It has four hooks. `stream` changes what a reader is shown, `tool` what a tool is given and gives,
`chat` what a model is sent; `turn` tells the log how to keep the messages of the turn. In between
the turn goes on with what was really said, so that each place has its own choice.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal, cast, get_args

from retinue.advisors.redact.own import Find, Function, own
from retinue.advisors.redact.patterns import KNOWN, USUAL, Pattern
from retinue.advisors.redact.places import (
    in_calls,
    in_result,
    in_thoughts,
    in_values,
    in_words,
)
from retinue.advisors.redact.scanner import Scanner, redacted
from retinue.advisors.redact.showing import Showing
from retinue.advisors.redact.tokens import LOOKALIKE, Restorer, Vault
from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    ChatResponse,
    ToolRequest,
    TurnRequest,
    TurnResponse,
)
from retinue.errors import ConfigError
from retinue.messages import Message
from retinue.tools import ToolResponse

Place = Literal["shown", "stored", "model", "tools", "results"]
"""Where values are taken out."""

_PLACES: Final[tuple[str, ...]] = get_args(Place)
_USUALLY: Final = ("shown", "stored")
PLACEHOLDERS: Final = "placeholders"
"""Under which a paused turn has, in its context, what a reversible one goes on with."""
_NOTE: Final = (
    "Words such as <EMAIL_1> stand for values that are kept from you. Use them as they are, signs"
    " included."
)
_logger: Final = logging.getLogger("retinue")


class Redact(Advisor):
    """Takes personal data and keys out of what is shown, stored, sent to the model or to tools.

    Args:
        patterns: what to look for. Names: "email", "phone", "card", "iban", "keys" (API keys,
            tokens, passwords behind their name, private keys), which are the default, and "ip".
            Mappings of a name to a pattern of your own: a regular expression of RE2 as a text
            (needs the extra `re2`), or a function that takes a line of text and gives pairs
            (begin, end).
        where: the places; by default "shown" and "stored".
            "shown": text and reasoning that the reader and the caller get.
            "stored": what the log and `result.messages` have, of all messages of the turn.
            "model": all messages that are sent; instructions are not touched.
            "tools": the arguments that tools are given.
            "results": what tools give, before the model, the log or the reader sees it.
        reversible: the model is sent placeholders such as <EMAIL_1>, and the values stand again in
            the answer, in the arguments that tools are given, and in the log. Its only place is
            "model".
        thinking: whether reasoning is changed too where it is shown.
        mark: what stands in place of a value; {name} is the name of its pattern.
        longest: characters that a match of an expression of your own may have.
        note: what the model is told of placeholders, behind the instructions; "" for nothing.

    Raises:
        ConfigError: an argument that cannot work.
        MissingExtraError: an expression of your own, and google-re2 is not installed.
    """

    def __init__(
        self,
        *patterns: str | Mapping[str, str | Find],
        where: Place | Iterable[Place] | None = None,
        reversible: bool = False,
        thinking: bool = True,
        mark: str = "[{name}]",
        longest: int = 100,
        note: str = _NOTE,
    ) -> None:
        self._where = _checked_places(where, reversible)
        if not 1 <= longest <= 1_000:
            raise ConfigError(f"Redact(longest={longest}): give 1 to 1,000 characters.")
        self._patterns = _checked_patterns(patterns or USUAL, longest)
        self._mark = mark
        self._check_mark()
        self._reversible = reversible
        self._thinking = thinking
        self._note = note
        self.traits = frozenset(self._traits())

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Sees to what is stored, and to answers that no model gave."""
        mine = request.local(self)
        if not mine.get("keeping") and ("stored" in self._where or self._reversible):
            mine["keeping"] = True
            _take_up(mine, request.context.get(PLACEHOLDERS))
            request.keep_as(partial(self._restored if self._reversible else self._kept, mine))
        response = await call_next(request)
        if self._reversible and response.status == "paused":
            kept = {"values": dict(_vault(mine).values), "written": _written(mine)}
            response = response.with_(context={**response.context, PLACEHOLDERS: kept})
        answer = response.message
        if answer is None or "shown" not in self._where or answer.id in _written(mine):
            return response
        text = self._redacted(answer.text)  # a layer has given it, or a tool
        if text == answer.text or response.status not in ("completed", "blocked"):
            return response
        return response.with_(message=request.reworded(answer, text))

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Takes values out of what is sent."""
        mine = request.local(self)
        if "model" in self._where:
            request = request.with_(messages=[self._sent(m, mine) for m in request.messages])
        if self._reversible and self._note:
            request = request.with_(instructions=(*request.instructions, self._note))
        response = await call_next(request)
        if response.blocked_by is None:
            _written(mine)[response.message.id] = request.output is not None
            return response
        answer = response.message
        if "shown" not in self._where or (text := self._redacted(answer.text)) == answer.text:
            return response
        return response.with_(message=request.reworded(answer, text))

    async def tool(
        self, request: ToolRequest, call_next: CallNext[ToolRequest, ToolResponse]
    ) -> ToolResponse:
        """Changes what a tool is given, and what it gives."""
        arguments = request.arguments
        if arguments is not None and self._reversible:
            restored = _vault(request.local(self)).restored
            request = request.with_(arguments=in_values(arguments, restored))
        elif arguments is not None and "tools" in self._where:
            request = request.with_(arguments=in_values(arguments, self._redacted))
        response = await call_next(request)
        if "results" in self._where:
            response = response.with_(result=in_result(response.result, self._redacted))
        return response

    def stream(self, request: ChatRequest) -> Showing | None:
        """Changes what is shown."""
        if self._reversible:
            vault = _vault(request.local(self))
            in_json = request.output is not None
            request.local(self)["in_json"] = in_json
            return Showing(Restorer(vault, in_json=in_json), Restorer(vault, in_json=False))
        if "shown" in self._where:
            return Showing(self._scanner(), self._scanner() if self._thinking else None)
        return None

    def _sent(self, message: Message, mine: dict[str, Any]) -> Message:
        """The message as the model is sent it: the same object in every round."""
        sent: dict[str, tuple[Message, Message]] = mine.setdefault("sent", {})
        known, changed = sent.get(message.id, (None, message))
        if known is not message:
            patterns, replace = self._patterns, self._replace
            if self._reversible:
                replace = _vault(mine).token
                if message.id not in _written(mine):  # a placeholder in it is none of ours
                    patterns = [LOOKALIKE, *patterns]
            changed = in_words(message, Scanner(patterns, replace))
            changed = in_calls(changed, lambda text: redacted(text, patterns, replace))
            sent[message.id] = (message, changed)
        return changed

    def _kept(self, _: dict[str, Any], message: Message) -> Message:
        """The message as it is stored. Where a function fails, nothing of a text is."""
        try:
            changed = in_words(message, self._scanner(), cut=message.partial)
            return in_thoughts(in_calls(changed, self._redacted), self._redacted)
        except Exception:
            _logger.exception("Redact could not look through a message; its texts are not stored.")
            mark = self._replace("redacted", "")
            changed = message.with_text(mark) if message.text else message
            return in_thoughts(in_calls(changed, lambda _: mark), lambda _: mark)

    def _restored(self, mine: dict[str, Any], message: Message) -> Message:
        """The message as it is stored: the values stand again in what the model wrote."""
        written, vault = _written(mine), _vault(mine)
        cut = message.partial and message.role == "assistant"
        if not cut and message.id not in written:
            return message
        in_json = bool(written.get(message.id, mine.get("in_json")))
        changed = in_words(message, Restorer(vault, in_json=in_json), cut=cut)
        return in_calls(changed, vault.restored)

    def _scanner(self) -> Scanner:
        return Scanner(self._patterns, self._replace)

    def _redacted(self, text: str) -> str:
        return redacted(text, self._patterns, self._replace)

    def _replace(self, name: str, _: str) -> str:
        return self._mark.replace("{name}", name)

    def _check_mark(self) -> None:
        looked_for = [one for one in self._patterns if not isinstance(one, Function)]
        for pattern in self._patterns:
            mark = self._replace(pattern.name, "")
            if redacted(mark, looked_for, lambda name, _: "") != mark:
                raise ConfigError(
                    f"Redact(mark={self._mark!r}): {mark!r} would be redacted in its turn; give"
                    " another mark."
                )

    def _traits(self) -> Iterable[str]:
        where = self._where
        if where & {"shown", "stored"}:
            yield "redacts"
        if "stored" in where:
            yield "redacts-log"
        if "model" in where:
            yield "redacts-prompt"
        if self._reversible:
            yield "restores"


def _take_up(mine: dict[str, Any], kept: Any) -> None:
    """Goes on with the placeholders of a turn that has paused, if it has some."""
    if kept is not None:
        mine["vault"] = Vault(kept["values"])
        mine["written"] = dict(kept["written"])


def _vault(mine: dict[str, Any]) -> Vault:
    return mine.setdefault("vault", Vault())


def _written(mine: dict[str, Any]) -> dict[str, bool]:
    """The ids of what the model wrote in this turn, and whether it is JSON."""
    return mine.setdefault("written", {})


def _checked_places(where: str | Iterable[str] | None, reversible: bool) -> frozenset[str]:
    if where is None:
        where = ("model",) if reversible else _USUALLY
    places = frozenset((where,) if isinstance(where, str) else where)
    unknown = sorted(places - set(_PLACES))
    if unknown or not places:
        what = f"{unknown[0]!r} is no place" if unknown else "no place is given"
        raise ConfigError(f"Redact(where=...): {what}; there are {', '.join(_PLACES)}.")
    if reversible and places != frozenset(("model",)):
        raise ConfigError(
            "Redact(reversible=True) takes values out of what the model is sent and puts them back"
            " everywhere else; leave `where` out, and put another Redact outside it for other"
            " places."
        )
    return places


def _checked_patterns(given: Iterable[Any], longest: int) -> list[Pattern]:
    patterns: list[Pattern] = []
    for one in given:
        if isinstance(one, str) and one in KNOWN:
            patterns.append(KNOWN[one])
        elif isinstance(one, Mapping):
            patterns += own(cast("Mapping[str, str | Find]", one), longest)
        else:
            raise ConfigError(
                f"Redact: {one!r} is no pattern; the known ones are {', '.join(KNOWN)}, and your"
                " own come as a mapping, {'name': expression or function}."
            )
    names = [pattern.name for pattern in patterns]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"Redact: two patterns are called {name!r}; rename one of them.")
    return patterns
