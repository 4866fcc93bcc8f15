"""What came of one model call, at a glance."""

from collections.abc import Sequence

from retinue.chains.requests import ChatRequest
from retinue.messages import TextDelta, ToolCall, Usage
from retinue.models.base import Model
from tests.models.calling import Heard


class Answer(Heard):
    """Takes what a model sends, and tells its parts."""

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The tools it asks for."""
        return self.message.tool_calls

    @property
    def usage(self) -> Usage | None:
        """The tokens it reported, or None."""
        return self.message.usage

    @property
    def finish(self) -> str | None:
        """Why it stopped."""
        return self.message.finish

    @property
    def chunks(self) -> int:
        """How many pieces the text came in."""
        return sum(isinstance(delta, TextDelta) for delta in self.deltas)


async def answer(model: Model, request: ChatRequest) -> Answer:
    """The model's answer to one request."""
    taken = Answer()
    await model.generate(request, taken)
    return taken
