"""Functions that search, in the shape of a retriever."""

import functools
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from retinue.errors import ConfigError, RetrievalError
from retinue.retrieval import Document, as_retriever


async def by_question(query: str) -> list[str]:
    return [query, "b", "c"]


def plain(query: str) -> list[Document]:
    return [Document(query)]


async def with_count(query: str, k: int) -> list[str]:
    return [query] * 9 if k == 2 else []


def named(query: str, *, index: str = "main", top_k: int = 1) -> list[str]:
    return [f"{query} {index} {top_k}"]


def with_option(query: str, verbose: bool = False) -> list[str]:
    return [f"{query} {verbose}"]


def everything(*given: Any, **options: Any) -> list[str]:
    return [f"{given} {options}"]


class Asked:
    async def retrieve(self, query: str, top_k: int) -> Sequence[Document]:
        return [Document(f"{query} {top_k}")]


class Called:
    async def __call__(self, query: str) -> str:
        return query


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (by_question, ["q", "b"]),
        (plain, ["q"]),
        (with_count, ["q", "q"]),
        (named, ["q main 2"]),
        (functools.partial(named, index="side"), ["q side 2"]),
        (with_option, ["q False"]),
        (everything, ["('q',) {}"]),
        (Asked(), ["q 2"]),
        (Called(), ["q"]),
    ],
)
async def test_whatever_searches_is_asked_in_its_own_way(source: Any, found: list[str]) -> None:
    assert [one.text for one in await as_retriever(source).retrieve("q", 2)] == found


@pytest.mark.parametrize(
    ("gives", "found"),
    [
        (None, []),
        ("one text", ["one text"]),
        (Document("one"), ["one"]),
        (iter(("a", Document("b"), "c")), ["a", "b"]),
        (["", " \n", "kept"], ["kept"]),
    ],
)
async def test_whatever_it_gives_becomes_documents(gives: Any, found: list[str]) -> None:
    retriever = as_retriever(lambda query: gives)
    assert [one.text for one in await retriever.retrieve("q", 2)] == found


async def test_a_plain_function_that_gives_a_coroutine_is_awaited() -> None:
    retriever = as_retriever(lambda query: by_question(query))
    assert [one.text for one in await retriever.retrieve("q", 1)] == ["q"]


async def test_a_plain_function_runs_in_a_thread() -> None:
    def where(query: str) -> str:
        return str(threading.current_thread() is threading.main_thread())

    (found,) = await as_retriever(where).retrieve("q", 1)
    assert found.text == "False"


@pytest.mark.parametrize("wrong", [None, "text", 7, Asked, object()])
def test_what_cannot_search_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="is no retriever; give"):
        as_retriever(wrong)


@pytest.mark.parametrize("wrong", [lambda: "x", lambda a, b, c: "x"], ids=["none", "three"])
def test_a_function_that_cannot_take_the_question_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"must take \(query\) or \(query, top_k\)"):
        as_retriever(wrong)


@pytest.mark.parametrize("wrong", [[1], [{"text": "d"}], 7])
async def test_a_search_that_finds_no_documents_but_something_else_is_told_so(wrong: Any) -> None:
    with pytest.raises(RetrievalError, match="it must give texts or Documents"):
        await as_retriever(lambda query: wrong).retrieve("q", 1)
