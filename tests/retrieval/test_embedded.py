"""Documents found by the vectors of an embedder that is given."""

import asyncio
import math
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.errors import ConfigError, RetrievalError
from retinue.retrieval import Document, Embedded

AXES = ("cat", "ship", "rain")


def embed(texts: list[str]) -> list[list[float]]:
    """How often each of three words is said, and a little of everything."""
    return [[text.lower().count(word) + 0.01 for word in AXES] for text in texts]


async def embed_later(texts: list[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return embed(texts)


@pytest.mark.parametrize("given", [embed, embed_later, lambda t: embed_later(t)])
async def test_the_nearest_comes_first(given: Any) -> None:
    index = Embedded(given)
    await index.add_many([Document("cat cat", "c"), Document("ship", "s"), Document("rain cat")])
    found = await index.retrieve("A cat.", 2)
    assert [one.text for one in found] == ["cat cat", "rain cat"]
    assert found[0].score == pytest.approx(1, abs=1e-3)
    assert found[1].score == pytest.approx(1 / math.sqrt(2), abs=0.02)


async def test_documents_are_replaced_removed_and_counted() -> None:
    index = Embedded(embed)
    assert await index.retrieve("cat") == []
    assert await index.add(Document("cat", "d")) == "d"
    await index.add(Document("ship", "d"))
    assert await index.add("cat") == Document("cat").id
    assert await index.count() == 2
    assert (await index.retrieve("ship", 1))[0].id == "d"
    assert await index.remove("d", "unknown") == 1
    assert [one.text for one in await index.retrieve("ship")] == ["cat"]
    await index.close()


async def test_a_long_document_is_found_by_the_passage() -> None:
    index = Embedded(embed, size=20, overlap=0)
    await index.add(Document("rain " * 10 + "ship " * 3 + "rain " * 10, "log"))
    (found,) = await index.retrieve("ship", 1)
    assert "ship" in found.text
    assert len(found.text) <= 20
    assert (found.id, found.start > 0) == ("log", True)
    assert await index.count() == 1


async def test_the_embedder_is_given_so_many_texts_at_once_off_the_event_loop() -> None:
    seen: list[tuple[int, bool]] = []

    def watched(texts: list[str]) -> list[list[float]]:
        seen.append((len(texts), threading.current_thread() is threading.main_thread()))
        return embed(texts)

    index = Embedded(watched, batch=2)
    await index.add_many(["cat", "ship", "rain", "cat ship", "rain ship"])
    assert seen == [(2, False), (2, False), (1, False)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda texts: embed(texts)[1:], "0 vectors for 1 texts"),
        (lambda texts: [[0.0, 0.0]], "points nowhere"),
        (lambda texts: [[math.nan, 1.0]], "points nowhere"),
        (lambda texts: [[1.0] * len(texts[0])], "vectors of 3 and of 9 numbers"),
        (lambda texts: None, "gave NoneType; it must give a list of vectors"),
        (lambda texts: [0.5], "gave 0.5 for a vector"),
    ],
    ids=["too few", "zero", "no number", "two lengths", "nothing", "flat"],
)
async def test_an_embedder_that_does_its_work_badly_adds_nothing(given: Any, words: str) -> None:
    index = Embedded(given, batch=1)
    with pytest.raises(RetrievalError, match=words):
        await index.add_many(["cat", "cat ships"])
    assert await index.count() == 0


async def test_a_question_of_another_length_than_the_documents_is_told() -> None:
    index = Embedded(lambda texts: [[1.0] * len(texts[0])])
    await index.add("cat")
    with pytest.raises(RetrievalError, match="use one embedder"):
        await index.retrieve("ships")


async def test_an_error_of_the_embedder_arrives_as_it_is() -> None:
    def fail(texts: list[str]) -> list[list[float]]:
        raise OSError("no such model")

    with pytest.raises(OSError, match="no such model"):
        await Embedded(fail).add("cat")


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (None, {}, "give a function"),
        (embed, {"batch": 0}, "at least 1"),
        (embed, {"size": 0}, "nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(given: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Embedded(given, **options)


async def test_fewer_than_one_document_is_refused() -> None:
    with pytest.raises(ConfigError, match="top_k=0"):
        await Embedded(embed).retrieve("cat", 0)


vectors = st.lists(st.floats(0.1, 1), min_size=3, max_size=3)


@given(st.lists(vectors, min_size=1, max_size=8), st.integers(1, 9))
def test_scores_fall_and_are_cosines(rows: list[list[float]], top_k: int) -> None:
    async def search() -> list[float]:
        index = Embedded(lambda texts: [rows[int(text)] for text in texts])
        await index.add_many([str(number) for number in range(len(rows))])
        return [one.score or 0 for one in await index.retrieve("0", top_k)]

    scores = asyncio.run(search())
    assert len(scores) == min(top_k, len(rows))
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1, abs=1e-5)
