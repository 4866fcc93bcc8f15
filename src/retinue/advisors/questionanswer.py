"""`QuestionAnswer`: documents are looked up once a turn, and the model answers from them.

It has two hooks. `turn` looks up what fits the question; `chat` puts it before the question in
every request to the model. The log keeps the plain question (R-MEM-3), and nothing here is a
template: question and documents go out word for word.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    ChatResponse,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.callables import takes
from retinue.errors import ConfigError, RetrievalError
from retinue.messages import Message, Text
from retinue.messages.masking import error_words
from retinue.messages.window import is_question
from retinue.retrieval import Document, Retriever, as_retriever, fenced
from retinue.retrieval.base import Search, check_count
from retinue.tools.options import is_positive

Wording = Callable[[str, Sequence[Document]], str]
"""What is sent in place of the question's text, made from it and the documents."""

SOURCES: Final = "sources"
"""Under which the documents stand in the context of the turn and of its result."""

_logger: Final = logging.getLogger("retinue")
_NOTHING: Final = "I found nothing about that."
_EARLIER: Final = 6  # messages of the conversation that a question is completed from
_LONGEST: Final = 2_000  # characters of each
_COMPLETE: Final = (
    "You are given a conversation and the question that follows it. Write the question so that it"
    " can be understood without the conversation: put names in place of words such as it or they."
    " Keep its language. Do not answer it. Give the question alone."
)


class QuestionAnswer(Advisor):
    """Grounds the answer in documents that are looked up for the question.

    They are looked up once a turn, for the last question of the input that has a text, and stand
    in `result.context["sources"]`, the best first, as the model was sent them.

    Args:
        retriever: what looks them up: a `Retriever`, or a function, plain or async, of the question
            (and of `top_k`) that gives documents or texts.
        top_k: how many documents at most, 4 by default.
        min_score: documents that score less are left out; on the retriever's own scale.
        strict: what happens where nothing is found. False: the question goes through as it is.
            True: `nothing_found` is the answer, and no model is asked. "refuse": the same, and the
            turn ends as blocked.
        nothing_found: that answer.
        wording: makes the text that is sent in place of the question's; by default the documents
            stand between marks before the question, which stays as it is.
        condense: whether a question that follows others is first made complete, by a model call on
            the side. `Memory` must stand outside.
        on_error: "raise" what the retriever raised, or "ignore" it and go on as if nothing had been
            found, with a warning in the log "retinue".
        timeout: seconds that the retriever may take, 10 by default, or None.

    Raises:
        ConfigError: an argument that cannot work.
    """

    def __init__(
        self,
        retriever: Retriever | Search,
        *,
        top_k: int = 4,
        min_score: float | None = None,
        strict: bool | Literal["refuse"] = False,
        nothing_found: str = _NOTHING,
        wording: Wording | None = None,
        condense: bool = False,
        on_error: Literal["raise", "ignore"] = "raise",
        timeout: float | None = 10.0,
    ) -> None:
        check_count(top_k)
        if strict not in (False, True, "refuse"):
            raise ConfigError(f"QuestionAnswer(strict={strict!r}): give False, True or 'refuse'.")
        if on_error not in ("raise", "ignore"):
            raise ConfigError(f"QuestionAnswer(on_error={on_error!r}): give 'raise' or 'ignore'.")
        if strict and not nothing_found.strip():
            raise ConfigError("QuestionAnswer(nothing_found=…) is blank; give the answer.")
        if timeout is not None and not is_positive(timeout):
            raise ConfigError(f"QuestionAnswer(timeout={timeout!r}): give seconds, or None.")
        if min_score is not None and not isinstance(cast("object", min_score), (int, float)):
            raise ConfigError(f"QuestionAnswer(min_score={min_score!r}): give a number, or None.")
        if wording is not None and not takes(wording, 2):
            raise ConfigError("QuestionAnswer(wording=…) is a function (question, documents).")
        self._retriever = as_retriever(retriever)
        self._top_k = top_k
        self._min_score = min_score
        self._strict = strict
        self._nothing_found = nothing_found
        self._wording = wording
        self._condense = condense
        self._ignore = on_error == "ignore"
        self._timeout = timeout
        extra = {"consults", "reads-history"} if condense else set[str]()
        self.traits = frozenset({"grounds", *extra})

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Looks up what fits the question, unless the turn goes on after a pause."""
        mine = request.local(self)
        outermost = request.local(QuestionAnswer).setdefault("outermost", self) is self
        if request.resumed:
            restored = _standing(request.context)
            # Of several such layers one grounds with all that the turn had found.
            mine["latest"] = restored if outermost else ()
            return await call_next(request.with_context(**{SOURCES: restored}))
        asked = _last(request.messages)
        documents = () if asked is None else await self._found(request, asked, mine)
        # Another such layer has put its own there; what the caller has there was not sent.
        others = () if outermost else _standing(request.context)
        request = request.with_context(**{SOURCES: (*others, *documents)})
        if self._strict and not documents:
            return self._instead(request)
        mine["latest"] = documents
        return await call_next(request)

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Puts the documents before the question."""
        mine = request.local(self)
        asked = _last(request.turn.messages)
        question = None if asked is None else request.turn.messages[asked]
        found: Mapping[str, tuple[Document, ...]] = mine.get("found", {})
        # A layer inside may have changed the question after it was looked up.
        documents = found.get(question.text if question else "", mine.get("latest", ()))
        at = _place(request.messages, question)
        if documents and at is not None:
            messages = list(request.messages)
            messages[at] = self._once(messages[at], documents, mine)
            request = request.with_(messages=tuple(messages))
        return await call_next(request)

    def _once(
        self, message: Message, documents: tuple[Document, ...], mine: dict[str, Any]
    ) -> Message:
        """The grounded question: the same object in every round, so that it is encoded once."""
        plain, with_these, grounded = mine.get("grounded", (None, None, None))
        if plain is message and with_these is documents:
            return grounded
        grounded = self._grounded(message, documents)
        mine["grounded"] = (message, documents, grounded)
        return grounded

    def _grounded(self, message: Message, documents: Sequence[Document]) -> Message:
        if self._wording is None:
            block = Text(fenced(documents) + "\n\n")
            return message.with_(parts=(block, *message.parts))
        text: Any = self._wording(message.text, documents)
        if not isinstance(text, str) or not text:
            raise ConfigError(
                f"QuestionAnswer(wording=…) gave {text!r}; it must give the text to be sent."
            )
        return message.with_text(text)

    def _instead(self, request: TurnRequest) -> TurnResponse:
        reason = "No document was found for the question."
        if self._strict == "refuse":
            return request.refuse(reason, answer=self._nothing_found)
        return request.respond(self._nothing_found, reason=reason)

    async def _found(
        self, request: TurnRequest, asked: int, mine: dict[str, Any]
    ) -> tuple[Document, ...]:
        """What was found for the question, looked up at its first entry."""
        text = request.messages[asked].text
        async with mine.setdefault("looking", asyncio.Lock()):  # entries may come at once
            found: dict[str, tuple[Document, ...]] = mine.setdefault("found", {})
            if text not in found:
                found[text] = await self._look_up(request, asked)
            return found[text]

    async def _look_up(self, request: TurnRequest, asked: int) -> tuple[Document, ...]:
        try:
            query = request.messages[asked].text
            if self._condense:
                query = await self._complete(request, asked)
            documents = await self._retrieve(query)
        except ConfigError:
            raise
        except Exception as error:
            if not self._ignore:
                raise
            told = error_words(error)
            _logger.warning("%s goes on without documents: %s", self.name, told)
            return ()
        return tuple(document for document in documents if self._fits(document))

    async def _retrieve(self, query: str) -> Sequence[Document]:
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return await self._retriever.retrieve(query, self._top_k)
        except TimeoutError as error:
            if not limit.expired():
                raise  # the retriever's own
            raise RetrievalError(
                f"The retriever {self._retriever!r} took longer than {self._timeout:g} seconds;"
                " make it quicker, or give QuestionAnswer a longer timeout."
            ) from error

    def _fits(self, document: Document) -> bool:
        if self._min_score is None:
            return True
        if document.score is None:
            raise ConfigError(
                f"QuestionAnswer(min_score={self._min_score}) needs scores, and the retriever"
                f" {self._retriever!r} gives none; have it set Document.score, or leave min_score"
                " out."
            )
        return document.score >= self._min_score

    async def _complete(self, request: TurnRequest, asked: int) -> str:
        """The question so that it can be understood alone; what comes first is so already."""
        question = request.messages[asked].text
        earlier = [
            f"{message.role}: {message.text[:_LONGEST]}"
            for message in (*request.history, *request.messages[:asked])
            if message.role in ("user", "assistant") and message.text.strip()
        ]
        if not earlier:
            return question
        told = "\n".join([*earlier[-_EARLIER:], "", f"The question: {question}"])
        answer = await request.consult(told, instructions=_COMPLETE)
        return answer.text.strip() or question


def _last(messages: Sequence[Message]) -> int | None:
    """Where the last question stands that has a text."""
    for at in range(len(messages) - 1, -1, -1):
        if is_question(messages[at]) and messages[at].text.strip():
            return at
    return None


def _place(messages: Sequence[Message], question: Message | None) -> int | None:
    """Where the question stands among the messages; other layers may have changed or renamed it."""
    if question is not None:
        for at in range(len(messages) - 1, -1, -1):
            if messages[at].id == question.id:
                return at
    return _last(messages)


def _standing(context: Mapping[str, Any]) -> tuple[Document, ...]:
    """What stands in the context as sources; of a turn that was paused, it came from a store."""
    try:
        return msgspec.convert(context.get(SOURCES, ()), tuple[Document, ...])
    except msgspec.ValidationError:  # it is the caller's own
        return ()
