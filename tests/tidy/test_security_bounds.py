"""The page of bounds names settings, constants and tests that exist."""

from __future__ import annotations

import re

from headgate.policy.settings import SETTINGS
from tests.tidy.tree import ROOT

_CODE = re.compile(r"`([^`]+)`")
_CONSTANT = re.compile(r"([a-z0-9_/]+)\.([A-Z][A-Z0-9_]+)\Z")


def _problem(name: str) -> str:
    if name.startswith("tests/"):
        path, _, test = name.partition("::")
        if not (ROOT / path).is_file():
            return f"{path} does not exist"
        is_there = not test or f"def {test}(" in (ROOT / path).read_text()
        return "" if is_there else f"{path} has no {test}"
    constant = _CONSTANT.match(name)
    if constant is None:
        return "" if name in SETTINGS else f"{name} is no setting"
    path = ROOT / "src" / "headgate" / f"{constant[1]}.py"
    if not path.is_file():
        return f"{path} does not exist"
    is_set = re.search(rf"^{constant[2]}\b.*=", path.read_text(), re.MULTILINE)
    return "" if is_set else f"{constant[1]} has no {constant[2]}"


def test_each_row_names_what_exists() -> None:
    page = (ROOT / "docs" / "security" / "bounds.md").read_text()
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0].strip() != "what"]
    assert len(rows) > 40
    names = [name for row in rows for cell in row[2:] for name in _CODE.findall(cell)]
    assert [problem for name in names if (problem := _problem(name))] == []
    assert all(_CODE.search(row[3]) for row in rows), "each row has a test"
