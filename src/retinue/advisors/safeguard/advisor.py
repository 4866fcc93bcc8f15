"""`Safeguard`: what must not be asked is refused before a model sees it, and what must not be said.

`turn` looks at the question. With `output=True`, `stream` holds the answer of each model call until
it has been looked at, and `turn` looks at an answer that no model call gave. How words are found is
in `matcher.py`, how text is held in `chains/holding.py`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Literal

from retinue.advisors.safeguard.folding import tail
from retinue.advisors.safeguard.rulebook import Rulebook
from retinue.advisors.safeguard.rules import Rules
from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    Refusal,
    Transform,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.holding import Cut, Holding, Thoughts, check_thinking, cut_of
from retinue.errors import ConfigError
from retinue.messages import File, Message, Text
from retinue.messages.window import is_question

_ANSWER: Final = "I cannot help with that."
_TEXTUAL: Final = ("text/", "application/json", "application/xml", "application/yaml")


class Safeguard(Advisor):
    """Refuses questions, and with `output=True` answers, that break a rule.

    A refused turn is `blocked`, `result.reason` names the rule and `result.text` is `answer`. For a
    question that is refused no model is asked and nothing is stored. Case, width, accents and what
    cannot be seen do not count.

    Args:
        rules: words and phrases (texts), regular expressions (compiled, of `re` or `re2`; RE2 runs
            them in bounded time, and case does not count), and functions, plain or async, of the
            text, which give None, or the name of what they found; or a mapping of rules' names to
            such.
        output: whether answers are looked at.
        input: whether questions are.
        mode: "word" finds words that stand alone: 'ass' is not in 'class'. In scripts that put no
            spaces between words, and so in both modes, every place counts. "substring" finds them
            inside of words.
        answer: what the caller is told.
        hold: how an answer is held: "all" until the model has ended, "sentence" by sentence, or by
            a number of characters (folded ones) that stay back. By default as many as the longest
            word or phrase has, and "all" where there is a regular expression or a function.
        thinking: whether reasoning is held and looked at too ("hold"), passes ("pass"), or is
            dropped ("drop").
        longest: characters of a sentence at most that is held.
        resent: whether questions that the input repeats, from before its last answer, are looked at
            again; for inputs whose earlier messages come from a client that you do not trust.

    Raises:
        ConfigError: an argument that cannot work.
        MissingExtraError: what finds words or regular expressions is not installed (`guard`).
    """

    order = 100  # before the conversation is read
    stream: Callable[[ChatRequest], Transform | None] | None = None

    def __init__(
        self,
        rules: Rules,
        *,
        output: bool = False,
        input: bool = True,
        mode: Literal["word", "substring"] = "word",
        answer: str = _ANSWER,
        hold: Literal["all", "sentence"] | int | None = None,
        thinking: Thoughts = "hold",
        longest: int = 2_000,
        resent: bool = False,
    ) -> None:
        if mode not in ("word", "substring"):
            raise ConfigError(f"Safeguard(mode={mode!r}): give 'word' or 'substring'.")
        if not (input or output):
            raise ConfigError("Safeguard(input=False) guards nothing; give output=True with it.")
        if hold is not None and not output:
            raise ConfigError(f"Safeguard(hold={hold!r}) holds answers; give output=True with it.")
        check_thinking("Safeguard", thinking)
        self._rules = Rulebook(rules, whole=mode == "word")
        self._input = input
        self._output = output
        self._answer = answer
        self._thinking: Thoughts = thinking
        self._resent = resent
        self._cut = _cut_of(self._rules, hold, longest)
        self.traits = frozenset({"guards"} if input else ()) | ({"holds"} if output else set())
        if output:
            self.stream = self._held

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Refuses the question, or an answer that came past the stream."""
        mine = request.local(self)
        if self._input and not request.resumed:
            rule = await self._wrong_with(request.messages, mine)
            if rule is not None:
                return request.refuse(_told("question", rule), answer=self._answer)
        response = await call_next(request)
        if self._output and response.status == "completed":
            if response.text == "".join(mine.get("passed", ())):
                return response
            rule = await self._rules.broken_by(response.text)
            if rule is not None:
                return request.refuse(_told("answer", rule), answer=self._answer)
        return response

    def _held(self, request: ChatRequest) -> Transform:
        """Holds what one model call says."""
        passed = request.local(self)["passed"] = []
        return Holding(self._cut, partial(self._judge, passed), thinking=self._thinking)

    def _judge(self, passed: list[str]) -> "_Judge":
        return _Judge(self._rules, passed, self._refuse)

    def _refuse(self, rule: str | None) -> None:
        if rule is not None:
            raise Refusal(self.name, _told("answer", rule), answer=self._answer)

    async def _wrong_with(self, messages: Sequence[Message], mine: dict[str, Any]) -> str | None:
        """The rule that the question breaks; what an earlier entry let pass is not looked at."""
        seen: dict[str, Message] = mine.setdefault("seen", {})
        new = [one for one in self._questions(messages) if seen.get(one.id) is not one]
        pieces = [list(_texts(message)) for message in reversed(new)]
        text = "\n".join(text for piece in pieces for text in piece)
        rule = await self._rules.broken_by(text)
        if rule is None and any(len(piece) > 1 for piece in pieces):
            # A word may be cut over the parts of a message.
            rule = self._rules.find("\n".join(map("".join, pieces)))
        seen.update((one.id, one) for one in new)
        return rule

    def _questions(self, messages: Sequence[Message]) -> Iterable[Message]:
        """What is asked now, the last first."""
        for message in reversed(messages):
            if is_question(message):
                yield message
            elif message.role == "assistant" and not self._resent:
                return


class _Judge:
    """Looks at one text of one model call.

    Args:
        rules: what it looks for.
        passed: takes what has left.
        refuse: is told the rule that the text breaks, or None.
    """

    __slots__ = ("_passed", "_past", "_refuse", "_rules")

    def __init__(
        self, rules: Rulebook, passed: list[str], refuse: Callable[[str | None], None]
    ) -> None:
        self._rules = rules
        self._passed = passed
        self._refuse = refuse
        self._past = ""

    def judge(self, held: str, *, complete: bool) -> Awaitable[None] | None:
        self._refuse(self._rules.find(held, past=self._past, complete=complete))
        return self._ask(held) if self._rules.checks else None

    def left(self, text: str) -> None:
        self._past = self._rules.context(self._past + text)
        self._passed.append(text)

    async def _ask(self, held: str) -> None:
        self._refuse(await self._rules.checked(held))


def _cut_of(
    rules: Rulebook, hold: Literal["all", "sentence"] | int | None, longest: int
) -> Cut | None:
    if hold is None:
        hold = rules.longest if rules.only_words else "all"
    cut = cut_of("Safeguard", hold, longest)
    if not isinstance(hold, int):
        return cut
    if hold < rules.longest:
        raise ConfigError(
            f"Safeguard(hold={hold}) is too short for {rules.longest_word!r}: give"
            f" {rules.longest} characters or more."
        )
    return partial(_window, hold)


def _window(size: int, held: str) -> tuple[int, int] | None:
    """Keeps the end whose folded form has so many characters."""
    leaves = tail(held, size)
    return (len(held), leaves) if leaves else None


def _texts(message: Message) -> Iterable[str]:
    """What a message says, and what text files in it say."""
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, File) and part.data is not None:
            kind = part.media_type.partition(";")[0].strip().lower()
            if kind.startswith(_TEXTUAL) or kind.endswith(("+json", "+xml")):
                yield part.data.decode("utf-8", "replace")


def _told(what: str, rule: str) -> str:
    return f"The {what} breaks the rule {rule!r}."
