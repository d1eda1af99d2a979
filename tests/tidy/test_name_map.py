"""Every new name in the map of decision 0024 exists."""

from __future__ import annotations

import ast
import re

from tests.tidy.tree import ROOT, modules, report

PAGE = ROOT / "docs/decisions/0024-a-house-with-rooms.md"

_ROW = re.compile(r"^\| [^|]+ \| (?P<new>[^|]+) \|$", re.MULTILINE)


def test_every_new_module_and_name_exists() -> None:
    moved, _, renamed = PAGE.read_text().partition("Classes and functions whose file")
    present = {module.name.removeprefix("headgate.") for module in modules()}
    missing = _new_names(moved) - present
    names = {part for name in _new_names(renamed) for part in name.split(".")}
    missing |= names - set(_defined_names())
    assert not missing, report(sorted(missing))


def _new_names(tables: str) -> set[str]:
    """The names in the second column."""
    names = {
        name for row in _ROW.finditer(tables) for name in re.findall(r"`([\w.]+)`", row["new"])
    }
    assert len(names) > 40
    return names


def _defined_names() -> list[str]:
    """Classes, functions and attributes of ``src/``."""
    names = []
    for module in modules():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.append(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.append(node.attr)
    return names
