"""What a module imports, and the two rules for it: only downward, and never in a circle."""

import ast
import graphlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tests.structure.sources import Source

RANKS: Final[Mapping[str, int]] = {
    "cli": 7,
    "serve": 6,
    "durable": 6,
    "testing": 6,
    "agent": 5,
    "advisors": 5,
    "telemetry": 5,
    "models": 4,
    "chains": 3,
    "tools": 2,
    "stores": 2,
    "retrieval": 2,
    "messages": 1,
    "errors": 0,
    "version": 0,
}
"""An import goes down this table or stays in its package. The package root stands above it."""

PACKAGE: Final = "retinue"


@dataclass(frozen=True)
class Import:
    """One import of a module of ours.

    Attributes:
        runs: False for one that only the type checker reads.
    """

    importer: str
    imported: str
    place: str
    runs: bool


def imports_of(source: Source, known: Collection[str]) -> Iterator[Import]:
    """The imports of modules in `known`, those inside functions and by name included."""
    # A lazy export names its modules in strings, so where modules are imported by name every
    # string that is a module's name counts.
    by_name = "import_module" in source.text or "__import__" in source.text
    pending: list[tuple[ast.AST, bool]] = [(source.tree, True)]
    while pending:
        node, runs = pending.pop()
        for target in _targets(node, source, by_name):
            imported = _longest_known(target, known)
            if imported is not None and imported != source.name:
                line = getattr(node, "lineno", 1)
                yield Import(source.name, imported, f"{source.place}:{line}", runs)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend((child, False) for child in node.body)
            pending.extend((child, runs) for child in node.orelse)
        else:
            pending.extend((child, runs) for child in ast.iter_child_nodes(node))


def _targets(node: ast.AST, source: Source, by_name: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(node.module or "", node.level, source)
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif by_name and isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value.lstrip(".")
        level = len(node.value) - len(name)
        if name.replace(".", "").isidentifier() and (level or name.startswith(f"{PACKAGE}.")):
            yield _absolute(name, level, source)


def _absolute(name: str, level: int, source: Source) -> str:
    if not level:
        return name
    parts = source.name.split(".")
    base = parts[: len(parts) - level + source.is_package]
    return ".".join([*base, name] if name else base)


def _longest_known(target: str, known: Collection[str]) -> str | None:
    while target and target not in known:
        target = target.rpartition(".")[0]
    return target or None


def _package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _rank(module: str) -> int | None:
    package = _package_of(module)
    return RANKS.get(package) if package else len(RANKS)


def rank_faults(sources: Mapping[str, Source]) -> list[str]:
    """Modules without a rank, and imports that do not go down.

    What only the type checker reads is bound too: it is knowledge of the other package.
    """
    faults = [
        f"{source.place}: {name} has no rank; add its package to the table or move it."
        for name, source in sources.items()
        if _rank(name) is None
    ]
    for source in sources.values():
        for each in imports_of(source, sources):
            above, below = _rank(each.importer), _rank(each.imported)
            if above is None or below is None or above > below:
                continue
            if _package_of(each.importer) != _package_of(each.imported):
                faults.append(
                    f"{each.place}: {each.importer} (rank {above}) must not import "
                    f"{each.imported} (rank {below}); imports only go down."
                )
    return faults


def cycle_faults(sources: Mapping[str, Source]) -> list[str]:
    """Modules that import each other in a circle, also where a function hides the import.

    What only the type checker reads never runs, so it closes no circle.
    """
    graph = {
        name: {each.imported for each in imports_of(source, sources) if each.runs}
        for name, source in sources.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [f"import cycle: {' <- '.join(error.args[1])}"]
    return []
