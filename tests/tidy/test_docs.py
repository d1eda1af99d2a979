"""Every name that others may use says what it means."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.tree import Module, report, written_modules

PACKAGE_DOCSTRING_CHARACTERS_MIN = 60

# Their methods are documented where the library declares them.
LIBRARY_BASES = {
    "BufferedProtocol",
    "DataSource",
    "DataSourceReader",
    "DataSourceStreamReader",
    "HttpToolsProtocol",
    "InputPartition",
    "Middleware",
    "Protocol",
    "SimpleDataSourceStreamReader",
    "StreamingQueryListener",
}


def test_every_module_says_what_it_is() -> None:
    problems = [
        f"{module.where} has no docstring"
        for module in written_modules()
        if not ast.get_docstring(module.syntax)
    ]
    assert not problems, report(problems)


def test_every_package_says_what_lives_there() -> None:
    problems = [
        f"{module.where}: say in a sentence or two what lives in this package"
        for module in written_modules()
        if module.is_package
        and len(ast.get_docstring(module.syntax) or "") < PACKAGE_DOCSTRING_CHARACTERS_MIN
    ]
    assert not problems, report(problems)


def test_every_public_name_is_documented() -> None:
    documented, protocols = _documented_methods(), _documented_protocols()
    problems = []
    for module in written_modules():
        implemented = _implemented_methods(module, protocols)
        for name, node in _public_names(module.syntax.body, ""):
            if ast.get_docstring(node) or name in implemented:
                continue
            if _inherits_docs(module, name, documented):
                continue
            problems.append(f"{module.where}:{node.lineno}: {name} has no docstring")
    assert not problems, report(problems)


Documentable = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _public_names(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Documentable]]:
    """Classes, functions and methods that do not begin with an underscore."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_") or _is_variant(node):
            continue
        yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef) and not _describes_a_foreign_class(node):
            yield from _public_names(node.body, f"{prefix}{node.name}.")


def _describes_a_foreign_class(node: ast.ClassDef) -> bool:
    """Whether it is a protocol that only names what is used of somebody else's class.

    By habit its docstring begins with "What this package uses of".
    """
    return _is_protocol(node) and (ast.get_docstring(node) or "").startswith("What this ")


def _is_variant(node: Documentable) -> bool:
    """Whether it is an overload or a property's setter, documented at the other one."""
    names = {ast.unparse(decorator).rsplit(".", 1)[-1] for decorator in node.decorator_list}
    return bool(names & {"overload", "setter", "deleter", "override"})


def _documented_methods() -> dict[str, tuple[set[str], set[str]]]:
    """For each class of ours: its bases, and the methods that it documents."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for module in written_modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base).split("[")[0].rsplit(".", 1)[-1] for base in node.bases}
                methods = {
                    item.name
                    for item in node.body
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                    and ast.get_docstring(item)
                }
                known_bases, known_methods = found.get(node.name, (set(), set()))
                found[node.name] = (known_bases | bases, known_methods | methods)
    return found


def _documented_protocols() -> list[tuple[set[str], set[str]]]:
    """For each protocol of ours: its public methods, and those of them that it documents."""
    return [
        ({item.name for item in methods}, {m.name for m in methods if ast.get_docstring(m)})
        for module in written_modules()
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and _is_protocol(node)
        if (methods := _public_methods(node))
    ]


def _implemented_methods(module: Module, protocols: list[tuple[set[str], set[str]]]) -> set[str]:
    """Methods, as ``Class.method``, that a protocol documents which the class implements whole."""
    found = set()
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and not _is_protocol(node):
            names = {item.name for item in _public_methods(node)}
            for methods, documented in protocols:
                if methods <= names:
                    found |= {f"{node.name}.{method}" for method in documented}
    return found


def _public_methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        item
        for item in node.body
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        if not item.name.startswith("_")
    ]


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).split("[")[0] == "Protocol" for base in node.bases)


def _inherits_docs(
    module: Module, name: str, documented: dict[str, tuple[set[str], set[str]]]
) -> bool:
    """Whether the method of the same name of a base class, or of a library's, is documented."""
    owner, _, method = name.rpartition(".")
    if not owner:
        return False
    waiting, seen = {owner.rsplit(".", 1)[-1]}, set[str]()
    while waiting:
        current = waiting.pop()
        seen.add(current)
        bases, methods = documented.get(current, (set(), set()))
        if method in methods or (bases & LIBRARY_BASES and not _is_protocol_class(module, owner)):
            return True
        waiting |= bases - seen
    return False


def _is_protocol_class(module: Module, owner: str) -> bool:
    """Whether the class is a ``typing.Protocol``: then nobody else documents its methods."""
    return any(
        isinstance(node, ast.ClassDef) and node.name == owner and _is_protocol(node)
        for node in module.nodes
    )
