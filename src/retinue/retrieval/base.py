"""What a retriever is, what it finds, and how any search function becomes one. No I/O."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, Protocol, cast

from msgspec import Struct, field, structs

from retinue.errors import ConfigError, RetrievalError


class Document(Struct, frozen=True, omit_defaults=True):
    """A text that can be found, or a passage of one.

    Attributes:
        text: what it says.
        id: the name it is kept under; made from the text where none is given, so that the same
            text is the same document.
        meta: what you keep with it, such as a title or an address. A model is never sent it.
        score: how well it fits the question, the more the better, on the retriever's own scale;
            None where that has none.
        start: where it begins in the document that it was cut from, in characters.
    """

    text: str
    id: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    score: float | None = None
    start: int = 0

    def __post_init__(self) -> None:
        if not self.id:
            digest = blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=8)
            structs.force_setattr(self, "id", digest.hexdigest())


class Retriever(Protocol):
    """Finds documents for a question."""

    async def retrieve(self, query: str, top_k: int) -> Sequence[Document]:
        """The documents that fit best, the best first.

        Args:
            query: the question, as somebody wrote it.
            top_k: how many at most, 1 or more.

        Returns:
            none where nothing fits.
        """
        ...


Found = Iterable[Document | str] | Document | str | None
"""What a search function may give."""

Search = Callable[..., Found | Awaitable[Found]]
"""A search function: it takes the question, or the question and how many documents it may give."""

_COUNT: Final = "top_k"


def as_retriever(source: Retriever | Search) -> Retriever:
    """A retriever out of one, or out of any function that searches.

    A function is called with the question, and with `top_k` too if it has a second parameter that
    must be given, or one of that name. A plain one runs in a thread. It may give documents, texts,
    or None for nothing.

    Raises:
        ConfigError: it can be neither called nor asked.
    """
    search: Any = getattr(source, "retrieve", source)
    if isinstance(source, type) or not callable(search):
        what = f"the class {source.__name__}" if isinstance(source, type) else repr(source)
        raise ConfigError(
            f"{what} is no retriever; give an object with `async def retrieve(query, top_k)`, or a"
            " function of the question."
        )
    return _Searching(cast("Search", search), _name_of(source))


def check_count(top_k: int) -> None:
    """Refuses what is no number of documents from 1 on.

    Raises:
        ConfigError: it is.
    """
    if type(top_k) is not int or top_k < 1:
        raise ConfigError(f"top_k={top_k!r}: ask for a whole number of documents, 1 or more.")


class _Searching:
    """A search function in the shape of a retriever; what it gives is checked."""

    def __init__(self, search: Search, name: str) -> None:
        self._search = search
        self._name = name
        self._shape = _shape(search, name)
        self._plain = not (
            inspect.iscoroutinefunction(search)
            or inspect.iscoroutinefunction(getattr(search, "__call__", None))  # noqa: B004
        )

    def __repr__(self) -> str:
        return self._name

    async def retrieve(self, query: str, top_k: int) -> Sequence[Document]:
        options = {_COUNT: top_k} if self._shape == "named" else {}
        given = (query, top_k) if self._shape == "both" else (query,)
        call = asyncio.to_thread if self._plain else _call
        found: Any = await call(self._search, *given, **options)
        if isinstance(found, Awaitable):
            found = await cast("Awaitable[Any]", found)
        return self._documents(found)[:top_k]

    def _documents(self, found: Any) -> list[Document]:
        if found is None:
            return []
        several = isinstance(found, Iterable) and not isinstance(found, (str, Document))
        items: list[Any] = list(cast("Iterable[Any]", found)) if several else [found]
        documents = [Document(item) if isinstance(item, str) else item for item in items]
        for item in documents:
            if not isinstance(item, Document):
                raise RetrievalError(
                    f"The retriever {self._name} gave {type(item).__name__}; it must give texts or"
                    " Documents, so turn what your search finds into Document(text, id=…, meta=…)."
                )
        return [document for document in documents if document.text.strip()]


async def _call(search: Search, *given: Any, **options: Any) -> Any:
    return search(*given, **options)


def _shape(search: Search, name: str) -> str:
    """How a search function is told the number of documents: "named", "both", or not at all."""
    try:
        signature = inspect.signature(search)
    except ValueError:  # some functions written in C have none
        return "query"
    for shape, given, options in (("named", 1, {_COUNT: 1}), ("both", 2, {}), ("query", 1, {})):
        try:
            signature.bind(*range(given), **options)
        except TypeError:
            continue
        if shape == "named" and _COUNT not in signature.parameters:
            continue  # it would take any option, and might pass it on
        if shape == "both" and _takes_one(signature):
            continue  # its second parameter is something else
        return shape
    raise ConfigError(f"The retriever {name} must take (query) or (query, top_k).")


def _takes_one(signature: inspect.Signature) -> bool:
    try:
        signature.bind("query")
    except TypeError:
        return False
    return True


def _name_of(source: object) -> str:
    return getattr(source, "__qualname__", None) or type(source).__name__
