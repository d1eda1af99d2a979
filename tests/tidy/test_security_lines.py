"""The page of lines names each attribute in which clients may wait, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.tidy.tree import ROOT, written_modules

_LAYERS = ("engine", "flow", "broker", "storage", "facade", "app")
_KINDS = {
    "deque",
    "OrderedDict",
    "SimpleQueue",
    "FairQueue",
    "FairSet",
    "NestedFairQueue",
    "NestedFairSet",
    "FairTimers",
    "FairLane",
    "FairSlots",
    "KeyedMutex",
    "LazyMinHeap",
    "TenantLines",
    "Lock",
    "Semaphore",
    "Condition",
}
_LINE = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+\.[A-Za-z_]+\.[a-z_]+)`")


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return getattr(node, "attr", getattr(node, "id", ""))


def _lines_of(tree: ast.ClassDef) -> Iterator[str]:
    """The attributes of a class that may be lines."""
    target: ast.expr
    value: ast.expr | None
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            target, value, annotation = node.target, node.value, ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign):
            target, value, annotation = node.targets[0], node.value, ""
        elif isinstance(node, ast.Call) and _name(node.func) == "heappush":
            target, value, annotation = node.args[0], node, ""
        else:
            continue
        if not (isinstance(target, ast.Attribute) and _name(target.value) == "self"):
            continue
        is_made = isinstance(value, ast.Call) and _name(value.func) in {*_KINDS, "heappush"}
        holds_lines = any(kind in _KINDS for kind in re.findall(r"\w+(?=\[)", annotation))
        is_order = annotation.startswith("dict[") and annotation.endswith(", None]")
        if is_made or holds_lines or is_order:
            yield target.attr


def _lines() -> set[str]:
    found: set[str] = set()
    for module in written_modules():
        if module.layer in _LAYERS:
            short = module.name.removeprefix("headgate.")
            for node in module.nodes:
                if isinstance(node, ast.ClassDef):
                    found.update(f"{short}.{node.name}.{line}" for line in _lines_of(node))
    return found


def test_each_line_has_a_row() -> None:
    named = set(_LINE.findall((ROOT / "docs" / "security" / "lines.md").read_text()))
    found = _lines()
    assert len(found) > 70
    assert sorted(found - named) == [], "lines without a row"
    assert sorted(named - found) == [], "rows of no line"
