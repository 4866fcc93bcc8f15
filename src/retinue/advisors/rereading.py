"""`ReReading`: the model reads the question twice. The smallest advisor: read it to write yours.

It has one hook, `chat`, so it runs once for each model call. It passes on a changed copy of the
request; the log keeps the plain question (R-MEM-3). The idea is RE2, from "Re-Reading Improves
Reasoning in Large Language Models" (Xu et al., 2023).
"""

from retinue.chains import Advisor, CallNext, ChatRequest, ChatResponse
from retinue.messages import Message, Text
from retinue.messages.window import is_question


class ReReading(Advisor):
    """Repeats the last question, for models that overlook half of it.

    It costs the tokens of the question once more, in every round.
    """

    traits = frozenset({"repeats"})

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Sends the last question twice."""
        messages = list(request.messages)
        for at in range(len(messages) - 1, -1, -1):
            if is_question(messages[at]):
                messages[at] = _twice(messages[at])
                break
        return await call_next(request.with_(messages=tuple(messages)))


def _twice(question: Message) -> Message:
    if not question.text.strip():  # a picture alone
        return question
    again = Text(f"\nRead the question again: {question.text}")
    return question.with_(parts=(*question.parts, again))
