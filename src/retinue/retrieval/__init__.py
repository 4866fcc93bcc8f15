"""Looking things up: what a retriever is, two that need no service, and the fence round the finds.

`base` is the protocol, `lexical` finds by words, `embedded` by the vectors of an embedder that is
given. Nothing here knows a model or an advisor.
"""

from retinue.retrieval.base import Document, Retriever, as_retriever
from retinue.retrieval.embedded import Embedded
from retinue.retrieval.fence import fenced
from retinue.retrieval.lexical import Lexical
from retinue.retrieval.passages import split
from retinue.retrieval.words import STOP_WORDS

__all__ = [
    "STOP_WORDS", "Document", "Embedded", "Lexical", "Retriever", "as_retriever", "fenced", "split",
]  # fmt: skip
