"""`Embedded`: documents found by meaning, through the vectors of an embedder that is given.

In the process, in plain Python: for some thousands of passages. For more, hand the search of your
vector database to the advisor as a function.
"""

import asyncio
from array import array
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

from msgspec import Struct, structs

from retinue.errors import ConfigError
from retinue.retrieval.base import Document, check_count
from retinue.retrieval.passages import OVERLAP, SIZE, as_documents, check_sizes, passages
from retinue.retrieval.vectors import BATCH, Embed, check_lengths, nearness, vectors_of


class _Row(Struct, frozen=True):
    """A passage and its vector, of length 1."""

    passage: Document
    vector: "array[float]"


class Embedded:
    """An index of vectors in the process.

    Scores are the cosine between question and passage, from -1 to 1. It finds the nearest passages
    however far they are, so give `QuestionAnswer` a `min_score` that suits the embedder.

    Args:
        embed: a function of a list of texts that gives a vector for each; a plain one runs in a
            thread.
        size: characters of a passage; longer documents are found passage by passage. None keeps
            them whole.
        overlap: characters that neighbouring passages may share.
        batch: texts that `embed` is given at once, at most.

    Raises:
        ConfigError: `embed` cannot be called, or a number makes no sense.
    """

    def __init__(
        self,
        embed: Embed,
        *,
        size: int | None = SIZE,
        overlap: int = OVERLAP,
        batch: int = BATCH,
    ) -> None:
        if not callable(embed):
            raise ConfigError(f"Embedded({embed!r}): give a function of a list of texts.")
        if type(batch) is not int or batch < 1:
            raise ConfigError(f"Embedded(batch={batch!r}): give at least 1 text at once.")
        check_sizes(size, overlap)
        self._embed = embed
        self._size = size
        self._overlap = overlap
        self._batch = batch
        self._rows: Mapping[str, Sequence[_Row]] = {}  # replaced as a whole, for searches on it

    def __repr__(self) -> str:
        return f"Embedded({len(self._rows)} documents)"

    async def add(self, document: Document | str) -> str:
        """Adds one document, in place of the one of its id, and gives its id."""
        await self.add_many([document])
        return document.id if isinstance(document, Document) else Document(document).id

    async def add_many(self, documents: Iterable[Document | str]) -> None:
        """Adds documents, each in place of the one of its id; all of them, or none.

        Raises:
            ConfigError: a document is blank; nothing was added.
            RetrievalError: the embedder gave no vectors for them; nothing was added.
        """
        given = as_documents(documents)
        pieces = [one for each in given for one in passages(each, self._size, self._overlap)]
        vectors = await vectors_of(self._embed, [one.text for one in pieces], self._batch)
        rows: dict[str, list[_Row]] = {document.id: [] for document in given}
        for passage, vector in zip(pieces, vectors, strict=True):
            rows[passage.id].append(_Row(passage, vector))
        check_lengths(vectors, self._length())
        self._rows = {**self._rows, **rows}

    async def remove(self, *ids: str) -> int:
        """Removes documents by id, and gives how many of them were there."""
        gone = set(ids) & self._rows.keys()
        self._rows = {id: rows for id, rows in self._rows.items() if id not in gone}
        return len(gone)

    async def count(self) -> int:
        """How many documents there are."""
        return len(self._rows)

    async def retrieve(self, query: str, top_k: int = 4) -> Sequence[Document]:
        """The passages whose vectors lie nearest to the question's.

        Raises:
            ConfigError: `top_k` is below 1.
            RetrievalError: the embedder gave no vector for it, or one of another length.
        """
        check_count(top_k)
        rows = [row for each in self._rows.values() for row in each]
        if not rows or not query.strip():
            return []
        (vector,) = await vectors_of(self._embed, [query])
        check_lengths([vector], self._length())
        return await asyncio.to_thread(_nearest, rows, vector, top_k)

    async def close(self) -> None:
        """Nothing is held but memory."""

    def _length(self) -> int | None:
        """How many numbers the vectors that are kept have."""
        return next((len(rows[0].vector) for rows in self._rows.values() if rows), None)


def _nearest(rows: Sequence[_Row], vector: "array[float]", top_k: int) -> list[Document]:
    scores = [nearness(row.vector, vector) for row in rows]
    best = nlargest(top_k, range(len(rows)), key=scores.__getitem__)
    return [structs.replace(rows[at].passage, score=round(scores[at], 6)) for at in best]
