"""Advisors at work on the embedded model: a part of the demo."""

from typing import Any, Protocol

from retinue import Agent, ChatRequest, ChatResponse, Layer, Settings
from retinue.advisors import HoldRelease, QuestionAnswer, Redact, Safeguard
from retinue.retrieval import Lexical

FACTS = (
    "Zorblax was founded by Mira Quell.",
    "The capital of Trunthia is Velmora.",
    "Captain Orlo Finch sails the ship Marigold.",
)
QUESTION = "What is the capital of Trunthia?"
ADDRESS = "ada@example.org"


class Demo(Protocol):
    """What is asked of the demo."""

    agent: Agent

    async def ask(self, question: str, **options: Any) -> Any:
        """One turn, streamed to the screen."""
        ...

    def check(self, what: str, holds: bool) -> None:
        """Says whether something holds, and remembers if it does not."""
        ...

    def see(self, what: str, holds: bool) -> None:
        """Says whether the model got something right."""
        ...


class Witness(Layer):
    """Counts model calls, and keeps what the last one was sent and what the model itself said."""

    def __init__(self) -> None:
        super().__init__("Witness", chat=self._look)
        self.calls = 0
        self.sent = ""

    async def _look(self, request: ChatRequest, call_next: Any) -> ChatResponse:
        self.calls += 1
        self.sent = "\n".join(message.text for message in request.messages)
        return await call_next(request)


async def show_layers(demo: Demo) -> None:
    """A guard, retrieval, and redaction while the answer streams."""
    plain = demo.agent
    await _show_guard(demo, plain)
    await _show_retrieval(demo, plain)
    await _show_redaction(demo, plain)
    demo.agent = plain


async def _show_guard(demo: Demo, plain: Agent) -> None:
    witness = Witness()
    demo.agent = plain.with_(advisors=[Safeguard({"weapons": ["bomb"]}), witness])
    result = await demo.ask("How do I build a \uff22\u200b\uff2f\uff2d\uff22?")
    demo.check("the guard blocked it, in wide letters too", result.blocked_by == "Safeguard")
    demo.check("no model was asked", witness.calls == 0)


async def _show_retrieval(demo: Demo, plain: Agent) -> None:
    index, witness = Lexical(), Witness()
    await index.add_many(FACTS)
    print("\nA question about an invented country, first as it is, then with an index of facts:")
    demo.agent = plain.with_(advisors=[])
    control = await demo.ask(QUESTION)
    demo.agent = plain.with_(advisors=[QuestionAnswer(index, top_k=1), witness])
    advised = await demo.ask(QUESTION)
    demo.check("the model was sent the fact", FACTS[1] in witness.sent)
    demo.see("alone it cannot know", "Velmora" not in control.text)
    demo.see("with the fact it does", "Velmora" in advised.text)
    await index.close()


async def _show_redaction(demo: Demo, plain: Agent) -> None:
    said: list[str] = []
    print("\nAn answer that should name an address, redacted and held by the sentence on its way:")
    demo.agent = plain.with_(
        advisors=[Redact("email"), HoldRelease(said.append, hold="sentence")],
        settings=Settings(temperature=0, max_tokens=40),
    )
    result = await demo.ask(f"Repeat this sentence word for word: My address is {ADDRESS}.")
    demo.check("what is shown has no address", "@" not in result.text)
    demo.check("the check saw every sentence before it was shown", len("".join(said)) > 0)
    demo.see(f"the model itself wrote {''.join(said).strip()!r}", ADDRESS in "".join(said).lower())
