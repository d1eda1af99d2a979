"""The pages of promises and of clients name tests that exist, and every fault has its row."""

from __future__ import annotations

import re

from tests.tidy.tree import ROOT, report

PAGE = ROOT / "docs" / "promises.md"
CLIENTS_PAGE = ROOT / "docs" / "guide" / "client-capabilities.md"
FAULTS = range(1, 21)
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_PROMISE = re.compile(r"^- .*?(?=^- |^#|^\||\Z)", re.MULTILINE | re.DOTALL)


def test_each_named_test_exists() -> None:
    problems = []
    for path, name in _TEST.findall(PAGE.read_text() + CLIENTS_PAGE.read_text()):
        file = ROOT / path
        if not file.exists():
            problems.append(f"{path} is not there")
        elif name and not re.search(rf"^(async )?def {name}\(", file.read_text(), re.MULTILINE):
            problems.append(f"{path} has no {name}")
    assert not problems, report(problems)


def test_each_promise_names_what_shows_it() -> None:
    promises, _, _ = PAGE.read_text().partition("## What is not covered")
    unshown = [p for p in _PROMISE.findall(promises) if not (_TEST.search(p) or "](" in p)]
    assert not unshown, report(unshown)


def test_each_fault_has_a_row_and_each_file_of_faults_is_named() -> None:
    page = PAGE.read_text()
    missing = [f"F{fault}" for fault in FAULTS if f"\n| F{fault} |" not in page]
    for folder in map((ROOT / "tests").joinpath, ("faults", "service/faults", "preload")):
        files = [str(file.relative_to(ROOT)) for file in folder.glob("test_*.py")]
        assert files
        missing += [file for file in files if f"`{file}" not in page]
    assert not missing, report(missing)
