"""Reads Python files: text, syntax tree and, inside a package, the module's name."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""The root of the repository."""

SRC: Final = ROOT / "src"

CODE: Final = ("src", "tests", "bench", "demo", "docs_src")
"""The folders that hold code written by hand."""

GENERATED: Final = ("_pb2", "_pb2_grpc")
"""How the names of files end that are made of others, as the stubs of gRPC are."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file.

    Attributes:
        place: its path from the root of the tree, for messages.
        name: its dotted module name, counted from the root of the tree.
        is_package: whether it is an `__init__.py`.
    """

    place: str
    name: str
    is_package: bool
    text: str
    tree: ast.Module


def read_sources(root: Path) -> Mapping[str, Source]:
    """All Python files below the root that are written by hand, by module name."""
    sources: dict[str, Source] = {}
    for path in sorted(root.rglob("*.py")):
        if path.stem.endswith(GENERATED):
            continue
        place = path.relative_to(root)
        is_package = path.name == "__init__.py"
        parts = place.parent.parts if is_package else place.with_suffix("").parts
        text = path.read_text("utf-8")
        source = Source(str(place), ".".join(parts), is_package, text, ast.parse(text, str(path)))
        sources[source.name] = source
    return sources


def functions_of(tree: ast.Module) -> Iterator[FunctionNode]:
    """All functions and methods, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            yield node
