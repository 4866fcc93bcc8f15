"""The recorded traffic of providers: where it is, and how one exchange reads.

The recordings are no part of the repository. `RETINUE_WIRE` names their folder; without it they
are looked for beside the repository. Their README says what each field means.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[2]


class Recording(msgspec.Struct, frozen=True):
    """One exchange. `expect` is what the answer means, by a decoder that is not ours."""

    id: str
    source: str
    status: int
    stream: bool
    body: Any
    expect: dict[str, Any]
    features: list[str]

    @property
    def bytes(self) -> bytes:
        """The body as it came."""
        if isinstance(self.body, str):
            return self.body.encode()
        return msgspec.json.encode(self.body)


def folder() -> Path:
    """Where the recordings are."""
    return Path(os.environ.get("RETINUE_WIRE") or ROOT.parent / "shared" / "wire")


@lru_cache
def recordings(form: str) -> tuple[Recording, ...]:
    """All exchanges of one form, such as "chat_completions".

    Raises:
        AssertionError: there are none; a test that replays nothing would prove nothing.
    """
    files = sorted((folder() / form).glob("*.jsonl"))
    assert files, (
        f"There are no recordings in {folder() / form}. Set RETINUE_WIRE to the folder that holds"
        f" the recorded traffic ({form}/*.jsonl)."
    )
    decoder = msgspec.json.Decoder(Recording)
    return tuple(
        decoder.decode(line)
        for file in files
        for line in file.read_text("utf-8").split("\n")
        if line
    )
