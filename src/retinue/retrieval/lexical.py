"""`Lexical`: documents found by their words, in a SQLite file with a full-text index (FTS5).

SQLite finds the candidates; what they score is worked out here, so that a score says the same for
every question and every size of the index. The words are made by `words`, and reach SQLite as data.
"""

import asyncio
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from retinue.errors import ConfigError, RetrievalError
from retinue.retrieval.base import Document, check_count
from retinue.retrieval.database import MEMORY, Database
from retinue.retrieval.passages import OVERLAP, SIZE, as_documents, check_sizes, passages
from retinue.retrieval.words import STOP_WORDS, asked, indexed

VERSION: Final = 1
"""Of the tables."""

_MOST_WORDS: Final = 64  # of a question that are looked for, the rarest ones
_SATURATION: Final = 1.2  # k1 of BM25: how soon a word said again counts no more
_LENGTH: Final = 0.75  # b of BM25: how much a long passage counts less
_PARAMETERS: Final = 500  # of one statement

_INSERT: Final = "INSERT INTO retrieval_passages (id, start, text, meta) VALUES (?, ?, ?, ?)"
_INSERT_WORDS: Final = "INSERT INTO retrieval_words (rowid, words) VALUES (?, ?)"
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS retrieval_version (version INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS retrieval_passages (key INTEGER PRIMARY KEY, id TEXT NOT NULL,"
    " start INTEGER NOT NULL, text TEXT NOT NULL, meta TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS retrieval_ids ON retrieval_passages (id)",
    # The words are ready; this tokenizer only parts them at the spaces between.
    "CREATE VIRTUAL TABLE IF NOT EXISTS retrieval_words USING fts5(words, tokenize='ascii')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS retrieval_vocabulary"
    " USING fts5vocab(retrieval_words, 'row')",
)


class Lexical:
    """An index of words in a SQLite file, also shared by several processes of one machine.

    The file may be that of a `SQLite` conversation store. Case, accents, width and the plural s do
    not count; Chinese, Japanese, Korean and Thai need no spaces; `camelCase` is found by its parts.
    A question is data: no character in it is special.

    Scores are BM25's, as a share from 0 to 1 of what the question's words weigh: words that the
    index does not have weigh most, so a document that has but the common words of a question
    scores near 0.

    Args:
        path: the file, in a folder that is there; or ":memory:", which is gone with `close`.
        size: characters of a passage; longer documents are found passage by passage. None keeps
            them whole.
        overlap: characters that neighbouring passages may share.
        ignored: words of a question that find nothing by themselves, in lower case without
            accents; by default those of English, and particles of Chinese and Japanese.
        busy_timeout: seconds to wait for another process to end its transaction, 5 by default.

    Raises:
        ConfigError: the path, the sizes or the time make no sense.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = MEMORY,
        *,
        size: int | None = SIZE,
        overlap: int = OVERLAP,
        ignored: Iterable[str] = STOP_WORDS,
        busy_timeout: float = 5.0,
    ) -> None:
        check_sizes(size, overlap)
        self._size = size
        self._overlap = overlap
        self._ignored = frozenset(ignored)
        self._database = Database(path, _prepare, busy_timeout)

    def __repr__(self) -> str:
        return f"Lexical({self._database.place!r})"

    async def add(self, document: Document | str) -> str:
        """Adds one document, in place of the one of its id, and gives its id."""
        await self.add_many([document])
        return document.id if isinstance(document, Document) else Document(document).id

    async def add_many(self, documents: Iterable[Document | str]) -> None:
        """Adds documents, each in place of the one of its id; all of them, or none.

        Raises:
            ConfigError: a document is blank or cannot be stored; nothing was added.
            RetrievalError: the file cannot be used; nothing was added.
        """
        given = as_documents(documents)
        if not given:
            return
        # Before the transaction, so that it holds up other writers no longer than it must.
        rows = await asyncio.to_thread(self._rows, given)

        def add(connection: sqlite3.Connection) -> None:
            _remove(connection, [document.id for document in given])
            for row, words in rows:
                cursor = connection.execute(_INSERT, row)
                connection.execute(_INSERT_WORDS, (cursor.lastrowid, words))

        await self._database.run(add, writing=True)

    def _rows(self, documents: Sequence[Document]) -> list[tuple[tuple[str, int, str, str], str]]:
        """Each passage as its row, and its words."""
        return [
            ((passage.id, passage.start, passage.text, meta), " ".join(indexed(passage.text)))
            for document in documents
            for meta in (_stored(document),)
            for passage in passages(document, self._size, self._overlap)
        ]

    async def remove(self, *ids: str) -> int:
        """Removes documents by id, and gives how many of them were there."""
        return await self._database.run(lambda one: _remove(one, ids), writing=True)

    async def count(self) -> int:
        """How many documents there are."""
        return await self._database.run(_count)

    async def retrieve(self, query: str, top_k: int = 4) -> Sequence[Document]:
        """The documents, or passages of them, that have most of the question's words.

        Raises:
            ConfigError: `top_k` is below 1.
            RetrievalError: the file cannot be used.
        """
        check_count(top_k)
        words = asked(query, self._ignored)
        return await self._database.run(lambda one: _search(one, words, top_k)) if words else []

    async def close(self) -> None:
        """Lets go of the file. The index may be used again; it opens anew."""
        await self._database.close()


def _prepare(connection: sqlite3.Connection) -> None:
    """Makes the tables where there are none.

    Raises:
        RetrievalError: they are of a later version.
    """
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'retrieval_version'"
    if not connection.execute(tables).fetchone():
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(
            "INSERT INTO retrieval_version SELECT ?"
            " WHERE NOT EXISTS (SELECT 1 FROM retrieval_version)",
            (VERSION,),
        )
        connection.execute("COMMIT")
    (version,) = connection.execute("SELECT version FROM retrieval_version").fetchone()
    if version > VERSION:
        raise RetrievalError(
            f"The index was made by a later version of retinue (tables {version}, known {VERSION});"
            " update retinue, or give another file."
        )


def _stored(document: Document) -> str:
    try:
        return msgspec.json.encode(document.meta).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"The document {document.id!r} cannot be stored as JSON ({error}); keep text, numbers,"
            " lists and dicts in `meta`."
        ) from error


def _remove(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    removed = 0
    for marks, few in _few(ids):
        keyed = f"SELECT key FROM retrieval_passages WHERE id IN ({marks})"
        known = f"SELECT count(DISTINCT id) FROM retrieval_passages WHERE id IN ({marks})"
        removed += connection.execute(known, few).fetchone()[0]
        connection.execute(f"DELETE FROM retrieval_words WHERE rowid IN ({keyed})", few)
        connection.execute(f"DELETE FROM retrieval_passages WHERE id IN ({marks})", few)
    return removed


def _count(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(DISTINCT id) FROM retrieval_passages").fetchone()[0]


def _search(connection: sqlite3.Connection, words: Sequence[str], top_k: int) -> list[Document]:
    total: int = connection.execute("SELECT count(*) FROM retrieval_passages").fetchone()[0]
    holders = _holders(connection, words)
    known = sorted(holders, key=lambda word: holders[word])[:_MOST_WORDS]
    # Words that most passages have find nothing where there are others, and cost the most.
    telling = [word for word in known if 2 * holders[word] <= total] or known
    if not telling:
        return []
    candidates = connection.execute(
        "SELECT rowid, words FROM retrieval_words WHERE retrieval_words MATCH ?"
        " ORDER BY rank, rowid LIMIT ?",
        (" OR ".join(f'"{word}"' for word in telling), 4 * top_k + 16),
    ).fetchall()
    weights = {word: _weight(holders.get(word, 0), total) for word in words}
    scores = _scores({key: text.split(" ") for key, text in candidates}, known, weights)
    best = sorted(scores, key=lambda key: (-scores[key], key))[:top_k]
    found = _passages(connection, best)
    return [msgspec.structs.replace(found[key], score=round(scores[key], 6)) for key in best]


def _holders(connection: sqlite3.Connection, words: Sequence[str]) -> dict[str, int]:
    """How many passages have each word, of those that any has."""
    return {
        word: passages
        for marks, few in _few(words)
        for word, passages in connection.execute(
            f"SELECT term, doc FROM retrieval_vocabulary WHERE term IN ({marks})", few
        )
    }


def _weight(holders: int, total: int) -> float:
    return math.log(1 + (total - holders + 0.5) / (holders + 0.5))


def _scores(
    candidates: Mapping[int, Sequence[str]], known: Collection[str], weights: Mapping[str, float]
) -> dict[int, float]:
    """BM25 of each candidate, over the most that a document could have."""
    most = sum(weights.values())
    usual = sum(map(len, candidates.values())) / len(candidates)
    scores: dict[int, float] = {}
    for key, words in candidates.items():
        said = Counter(words)
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * len(words) / usual)
        score = sum(weights[word] * said[word] / (said[word] + damping) for word in known)
        scores[key] = score / most
    return scores


def _passages(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, Document]:
    found: dict[int, Document] = {}
    for marks, few in _few(keys):
        statement = (
            f"SELECT key, id, start, text, meta FROM retrieval_passages WHERE key IN ({marks})"
        )
        for key, id, start, text, meta in connection.execute(statement, few):
            kept: dict[str, Any] = msgspec.json.decode(meta)
            found[key] = Document(text, id, kept, start=start)
    return found


def _few(values: Sequence[Any]) -> Iterable[tuple[str, Sequence[Any]]]:
    """The values in pieces that fit the parameters of a statement, with a mark for each."""
    for at in range(0, len(values), _PARAMETERS):
        few = values[at : at + _PARAMETERS]
        yield ", ".join("?" * len(few)), few
