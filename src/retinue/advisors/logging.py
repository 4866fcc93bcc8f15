"""`Logging`: one line for each turn, model call and tool run."""

import logging
import time
from typing import Any, Protocol

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
from retinue.messages.masking import LONGEST_WORDS, error_words, excerpt
from retinue.tools import ToolResponse


class Logger(Protocol):
    """What is asked of a logger: `log(level, event, **fields)`, as structlog's have it."""

    def log(self, level: int, event: str, /, **fields: Any) -> Any:
        """Writes one line."""
        ...


class Logging(Advisor):
    """Writes what happens: how long it took, what it cost, how it ended, with short previews.

    Put it outermost to see what the caller sees, innermost to see what the model sees.

    Args:
        logger: a structlog logger, a standard one, or the standard logger "retinue".
        level: the level of the lines; errors are logged at ERROR.
        preview: characters of a question, an answer, arguments or a result that a line may show; 0
            shows none. Things that look like keys and passwords are masked, here and in reasons
            and errors, whose words may quote what was said.

    Raises:
        ConfigError: the logger has no `log`, or `preview` is no number of characters.
    """

    def __init__(
        self,
        logger: Logger | logging.Logger | None = None,
        *,
        level: int = logging.INFO,
        preview: int = 80,
    ) -> None:
        if logger is not None and not callable(getattr(logger, "log", None)):
            raise ConfigError(
                f"Logging({logger!r}) cannot be used; give a standard logger, one of structlog's,"
                " or any object with log(level, event, **fields)."
            )
        if type(preview) is not int or preview < 0:
            raise ConfigError(f"Logging(preview={preview!r}): give 0 characters or more.")
        self._logger = logger if logger is not None else logging.getLogger("retinue")
        self._level = level
        self._preview = preview

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """One line when the turn is over."""
        line = self._line("turn", conversation=request.conversation)
        line.fields["question"] = self._cut(request.messages[-1].text if request.messages else "")
        with line:
            response = await call_next(request)
            line.fields |= {
                "status": response.status,
                "rounds": response.rounds,
                "input": response.usage.input,
                "output": response.usage.output,
                "answer": self._cut(response.text),
                "reason": response.reason and excerpt(response.reason, LONGEST_WORDS),
                "blocked_by": response.blocked_by,
            }
            return response

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """One line for each model call."""
        with self._line("chat", round=request.round, messages=len(request.messages)) as line:
            response = await call_next(request)
            line.fields |= {
                "model": response.message.model,
                "finish": response.message.finish,
                "input": response.usage and response.usage.input,
                "output": response.usage and response.usage.output,
                "calls": ",".join(call.name for call in response.message.tool_calls) or None,
                "answer": self._cut(response.text),
                "blocked_by": response.blocked_by,
            }
            return response

    async def tool(
        self, request: ToolRequest, call_next: CallNext[ToolRequest, ToolResponse]
    ) -> ToolResponse:
        """One line for each tool run."""
        with self._line("tool", tool=request.call.name, call=request.call.id) as line:
            line.fields["arguments"] = self._cut(request.call.arguments)
            response = await call_next(request)
            line.fields |= {
                "ok": response.ok,
                "result": self._cut(response.result.text),
                "blocked_by": response.blocked_by,
            }
            return response

    def _line(self, event: str, **fields: Any) -> "_Line":
        return _Line(self._logger, self._level, event, fields)

    def _cut(self, text: str) -> str | None:
        if not self._preview or not text:
            return None
        return excerpt(text, self._preview)


class _Line:
    """One line of the log, written when the block ends, whichever way."""

    def __init__(
        self, logger: Logger | logging.Logger, level: int, event: str, fields: dict[str, Any]
    ) -> None:
        self.fields = fields
        self._logger = logger
        self._level = level
        self._event = event
        self._began = time.perf_counter()

    def __enter__(self) -> "_Line":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: Any
    ) -> None:
        fields: dict[str, Any] = {"ms": round(1000 * (time.perf_counter() - self._began), 1)}
        fields |= {name: value for name, value in self.fields.items() if value is not None}
        level = self._level
        if error is not None:
            level = logging.ERROR if isinstance(error, Exception) else level
            fields["error"] = error_words(error)
        if isinstance(self._logger, logging.Logger):
            text = " ".join(f"{name}={value!r}" for name, value in fields.items())
            self._logger.log(level, "%s %s", self._event, text, extra={"retinue": fields})
        else:
            self._logger.log(level, self._event, **fields)
