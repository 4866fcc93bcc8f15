"""Retrieval on the embedded model, for real: invented facts that no training has seen."""

from collections.abc import AsyncIterator

import pytest

from retinue import Agent, Settings
from retinue.advisors import QuestionAnswer
from retinue.models.llamacpp import Local
from retinue.models.llamacpp.weights import VARIABLE
from retinue.retrieval import Lexical

FACTS = {
    "Who founded Zorblax?": ("Zorblax was founded by Mira Quell.", "Mira Quell"),
    "What is the capital of Trunthia?": ("The capital of Trunthia is Velmora.", "Velmora"),
    "Who sails the ship Marigold?": ("Captain Orlo Finch sails the ship Marigold.", "Orlo Finch"),
}
CALM = Settings(temperature=0, max_tokens=24)


@pytest.fixture
async def local(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Local]:
    monkeypatch.delenv(VARIABLE, raising=False)
    model = Local()
    yield model
    await model.close()


async def test_the_model_answers_from_invented_facts_what_it_cannot_answer_alone(
    local: Local,
) -> None:
    index = Lexical()
    await index.add_many(fact for fact, _ in FACTS.values())
    advised = Agent(local, settings=CALM, advisors=[QuestionAnswer(index, top_k=1)])
    control = Agent(local, settings=CALM)
    right = guessed = 0
    for question, (fact, answer) in FACTS.items():
        response = await advised.run(question)
        assert [one.text for one in response.context["sources"]] == [fact]
        right += answer in response.text
        guessed += answer in (await control.run(question)).text
    # Which words a small model puts round a name differs from CPU to CPU; once it may miss one.
    assert right >= 2
    assert guessed == 0
    await index.close()
