"""A lane's callback repairs an error or ends the process; it never just raises it into the loop.

The loop's exception handler logs what a callback raises, and everything goes on with a part that
stopped halfway. Only an InvariantError is fatal there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.tree import modules, report


def _errors(function: ast.FunctionDef) -> set[str]:
    """The parameters that hold the error of the work."""
    return {
        arg.arg
        for arg in function.args.args
        if arg.annotation is not None and ast.unparse(arg.annotation) == "BaseException | None"
    }


def _bare_raises(node: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines that raise one of these names, except behind a check that it is an InvariantError."""
    if isinstance(node, ast.If) and ast.unparse(node.test) in {
        f"isinstance({name}, InvariantError)" for name in names
    }:
        for other in node.orelse:
            yield from _bare_raises(other, names)
        return
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id in names:
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from _bare_raises(child, names)


def test_no_callback_of_a_lane_raises_an_error_bare() -> None:
    problems = []
    callbacks = 0
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef) and (names := _errors(node)):
                callbacks += 1
                problems += [f"{module.where}:{line}" for line in _bare_raises(node, names)]
    assert callbacks > 8
    assert not problems, report(problems)


def test_the_check_finds_what_it_forbids() -> None:
    function = ast.parse(
        "def done(_: object, error: BaseException | None) -> None:\n"
        "    if isinstance(error, InvariantError):\n"
        "        raise error\n"
        "    elif error is not None:\n"
        "        raise error\n"
    ).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert list(_bare_raises(function, _errors(function))) == [5]
