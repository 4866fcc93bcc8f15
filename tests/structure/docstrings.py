"""Public modules, classes, functions and methods have a docstring."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.structure.sources import FunctionNode, Source

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstring_faults(sources: Mapping[str, Source]) -> list[str]:
    """Public things without a docstring.

    A method that a protocol, or a base class named in the tree, documents need not repeat it, and
    a property may stand among the attributes in the docstring of its class. The name of a test is
    a sentence already.
    """
    promised = _promised_methods(sources)
    faults: list[str] = []
    for source in sources.values():
        if any(part.startswith("_") for part in source.name.split(".")):
            continue
        if not ast.get_docstring(source.tree):
            faults.append(f"{source.place}: the module has no docstring.")
        for name, node, inherited in _public_nodes(source.tree, promised):
            if not inherited and not ast.get_docstring(node):
                faults.append(f"{source.place}:{node.lineno}: {name} has no docstring.")
    return faults


def _promised_methods(sources: Mapping[str, Source]) -> Mapping[str, set[str]]:
    """By class name, the methods that it documents; under "Protocol" those of all protocols."""
    promised: defaultdict[str, set[str]] = defaultdict(set)
    for source in sources.values():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                methods = {each.name for each in _functions(node) if ast.get_docstring(each)}
                promised[node.name] |= methods
                if "Protocol" in _bases(node):
                    promised["Protocol"] |= methods
    return promised


def _public_nodes(
    tree: ast.Module, promised: Mapping[str, set[str]]
) -> Iterator[tuple[str, Documented, bool]]:
    """The name of each public thing, its node, and whether it inherits its docstring."""
    for function in _functions(tree):
        yield function.name, function, False
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node, False
            sources = {"Protocol", *_bases(node)} & promised.keys()
            inherited = {name for source in sources for name in promised[source]}
            attributes = ast.get_docstring(node) or ""
            for method in _functions(node):
                told = method.name in inherited or (
                    _decorators(method) & {"property", "cached_property"}
                    and f"    {method.name}: " in attributes
                )
                yield f"{node.name}.{method.name}", method, bool(told)


def _functions(parent: ast.Module | ast.ClassDef) -> Iterator[FunctionNode]:
    """The public functions right inside, without overloads, setters of properties and tests."""
    for node in parent.body:
        if not isinstance(node, FunctionNode) or node.name.startswith(("_", "test_")):
            continue
        if not _decorators(node) & {"overload", "setter", "deleter"}:
            yield node


def _decorators(node: FunctionNode) -> set[str]:
    return {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}


def _bases(node: ast.ClassDef) -> set[str]:
    names = (ast.unparse(base).partition("[")[0] for base in node.bases)
    return {name.rpartition(".")[2] for name in names}
