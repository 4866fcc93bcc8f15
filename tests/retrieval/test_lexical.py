"""Documents found by their words."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import ConfigError
from retinue.retrieval import Document, Lexical

FACTS = [
    Document("The Zorblax was founded in 1987 by Mira Quell.", "zorblax", {"page": 3}),
    Document("The capital of Trunthia is Velmora. It rains there.", "trunthia"),
    Document("The Quarx is the green animal of Trunthia.", "quarx"),
    Document("A ship that sails is a good ship.", "ship"),
]


@pytest.fixture
async def index() -> AsyncIterator[Lexical]:
    lexical = Lexical()
    await lexical.add_many(FACTS)
    yield lexical
    await lexical.close()


async def ids(index: Lexical, query: str, top_k: int = 4) -> list[str]:
    return [one.id for one in await index.retrieve(query, top_k)]


async def test_the_best_document_comes_first_as_it_was_added(index: Lexical) -> None:
    found = await index.retrieve("Which city is the capital of Trunthia?")
    assert [one.id for one in found] == ["trunthia", "quarx"]
    assert found[0].text == FACTS[1].text
    (zorblax,) = await index.retrieve("who founded zorblax")
    assert (zorblax.id, zorblax.meta, zorblax.start) == ("zorblax", {"page": 3}, 0)


async def test_at_most_top_k_are_found(index: Lexical) -> None:
    assert await ids(index, "Trunthia ship Zorblax", 1) == ["ship"]
    assert len(await ids(index, "Trunthia ship Zorblax", 3)) == 3
    with pytest.raises(ConfigError, match="top_k=0"):
        await index.retrieve("ship", 0)


@pytest.mark.behaviour("B-RA-1")
@pytest.mark.parametrize("query", ["Who is the king of France?", "Paris?", "", "?!", "🙂"])
async def test_what_no_document_speaks_of_finds_nothing(index: Lexical, query: str) -> None:
    assert await ids(index, query) == []


async def test_scores_are_shares_and_common_words_alone_score_low(index: Lexical) -> None:
    (best, *_) = await index.retrieve("Mira Quell founded Zorblax")
    (weak, *_) = await index.retrieve("Does the president of France like Trunthia?")
    assert best.score is not None
    assert weak.score is not None
    assert 0 < weak.score < 0.2 < 0.4 < best.score < 1


@pytest.mark.parametrize("word", ["猫", "北京", "タワー", "고양이", "école", "userName"])
async def test_words_of_every_script_are_found_among_others(word: str) -> None:
    index = Lexical()
    await index.add_many(
        [
            "私の猫は魚が好きです", "首都是北京市", "東京タワーへ行く", "고양이는 좋다",
            "l'E\u0301cole est fermée", "call getUserNameById",
        ]
    )  # fmt: skip
    assert len(await index.retrieve(word)) == 1
    await index.close()


@pytest.mark.behaviour("B-ME-9")
@pytest.mark.parametrize(
    "query",
    [
        'ship" OR "zorblax', "ship NEAR(zorblax)", "ship AND NOT ship", "words:ship", "ship*",
        "^ship", "ship'; DROP TABLE retrieval_passages; --", "{ship} %s \x00", "ship -sails + (",
    ],
)  # fmt: skip
async def test_a_question_is_data_whatever_is_in_it(index: Lexical, query: str) -> None:
    assert "ship" in await ids(index, query)
    assert await index.count() == 4


async def test_a_question_of_a_whole_book_is_answered(index: Lexical) -> None:
    book = " ".join(f"word{n}" for n in range(5_000)) + " zorblax"
    assert await ids(index, book) == ["zorblax"]


async def test_documents_are_replaced_and_removed_by_id(index: Lexical) -> None:
    assert await index.add(Document("The ship has sunk.", "ship")) == "ship"
    assert await index.count() == 4
    (found,) = await index.retrieve("ship")
    assert found.text == "The ship has sunk."
    assert await ids(index, "sails") == []
    assert await index.remove("ship", "quarx", "unknown") == 2
    assert await index.remove() == 0
    assert await ids(index, "ship quarx") == []
    assert await index.count() == 2


async def test_the_same_text_is_added_once() -> None:
    index = Lexical()
    first = await index.add("A text alone.")
    assert await index.add("A text alone.") == first
    assert await index.count() == 1
    await index.close()


async def test_a_long_document_is_found_by_the_passage_and_counts_as_one() -> None:
    index = Lexical(size=60, overlap=10)
    text = "Nothing here. " * 20 + "The treasure lies under the oak. " + "Nothing here. " * 20
    await index.add(Document(text, "map", {"title": "Map"}))
    (found,) = await index.retrieve("Where does the treasure lie?")
    assert "treasure lies under" in found.text
    assert len(found.text) <= 60
    assert text[found.start :].startswith(found.text)
    assert (found.id, found.meta) == ("map", {"title": "Map"})
    assert await index.count() == 1
    assert await index.remove("map") == 1
    assert await index.retrieve("treasure") == []
    await index.close()


async def test_documents_stay_whole_where_one_asks_for_it() -> None:
    index = Lexical(size=None)
    await index.add("word " * 5_000 + "treasure")
    (found,) = await index.retrieve("treasure")
    assert len(found.text) == 25_008
    await index.close()


async def test_the_words_that_find_nothing_can_be_those_of_another_language() -> None:
    german = Lexical(ignored=["was", "ist", "die", "von"])
    await german.add_many(["Die Hauptstadt von Trunthia ist Velmora."])
    assert await german.retrieve("Was ist die Farbe von Blau?") == []
    assert len(await german.retrieve("Was ist die Hauptstadt?")) == 1
    await german.close()


async def test_words_that_most_documents_have_find_nothing_where_there_are_others() -> None:
    index = Lexical()
    await index.add_many([f"Das ist Nummer {number}." for number in range(9)])
    await index.add("Das ist ein Quarx.")
    assert [one.text for one in await index.retrieve("Was ist das, ein Quarx?")] == [
        "Das ist ein Quarx."
    ]
    assert len(await index.retrieve("Das ist was?")) == 4
    await index.close()


async def test_all_documents_of_a_call_are_added_or_none(index: Lexical) -> None:
    with pytest.raises(ConfigError, match="'bad' cannot be stored as JSON"):
        await index.add_many([Document("fine", "fine"), Document("x", "bad", {"a": object()})])
    with pytest.raises(ConfigError, match="blank"):
        await index.add_many(["fine too", " "])
    await index.add_many([])
    assert await index.count() == 4
    assert await ids(index, "fine") == []


async def test_many_questions_and_additions_at_once(index: Lexical) -> None:
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(index.retrieve("capital")) for _ in range(20)]
        for number in range(20):
            group.create_task(index.add(f"Number {number} of many."))
    assert all(one.result()[0].id == "trunthia" for one in asked)
    assert await index.count() == 24


async def test_an_empty_index_finds_nothing() -> None:
    index = Lexical()
    assert await index.retrieve("anything") == []
    assert await index.count() == 0
    await index.close()


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40))
def test_a_document_is_found_by_its_own_text(text: str) -> None:
    async def found() -> bool:
        index = Lexical()
        try:
            await index.add(Document(f"{text} zorblax", "d"))
            (one,) = await index.retrieve(f"{text} zorblax")
            return one.text == f"{text} zorblax"
        finally:
            await index.close()

    assert asyncio.run(found())
