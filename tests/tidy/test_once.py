"""What modules of the pipeline share is declared by one of them.

Its tables and kernels name the same keys, orders and limits; two declarations of one drift apart.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.tidy.tree import report, written_modules


def test_no_two_modules_declare_the_same_constant() -> None:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in written_modules():
        if module.layer == "pipeline":
            for name, value in _constants(module.syntax):
                places[name, value].append(module.where)
    problems = [
        f"{name} = {value} stands in {', '.join(found)}"
        for (name, value), found in places.items()
        if len(found) > 1
    ]
    assert not problems, report(problems)


def test_a_constant_is_found_whoever_may_use_it() -> None:
    syntax = ast.parse("_KEY: Final = ('a', 'b')\nKEY = ('a', 'b')\nkey = ()\nOTHER: int\n")
    assert list(_constants(syntax)) == [("KEY", "('a', 'b')")] * 2


def _constants(syntax: ast.Module) -> Iterator[tuple[str, str]]:
    """Constants of a module, without a leading underscore, and what they are."""
    for node in syntax.body:
        if isinstance(node, ast.AnnAssign):
            target = node.target
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        else:
            continue
        if isinstance(target, ast.Name) and target.id.isupper() and node.value is not None:
            yield target.id.strip("_"), ast.unparse(node.value)
