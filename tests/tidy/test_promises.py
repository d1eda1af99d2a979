"""The pages of promises and of clients name tests that exist, and every fault has its row."""

from __future__ import annotations

import re

from tests.tidy.tree import ROOT, report

PAGE = ROOT / "docs" / "promises.md"
CLIENTS_PAGE = ROOT / "docs" / "guide" / "client-capabilities.md"
PEER = ROOT / "tests" / "peer"
FAULTS = range(1, 21)
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_JAVA_TEST = re.compile(r"`(\w+Test)\.(\w+)`")
_GO_TEST = re.compile(r"`(Test\w+)`")
_PYTHON_TEST = re.compile(r"`(\w+_test\.\w+\.\w+)`")
_TITLE = re.compile(r"`((?:\w+/)?\w+\.(?:test\.js|go))`: (.+?)(?=, `| \||, as|$)", re.MULTILINE)
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


def test_each_test_of_another_language_exists() -> None:
    page = CLIENTS_PAGE.read_text()
    problems = []
    java = {path.stem: path.read_text() for path in PEER.rglob("*.java")}
    for file, name in _JAVA_TEST.findall(page):
        if f" {name}(" not in java.get(file, ""):
            problems.append(f"{file} has no {name}")
    titles = _TITLE.findall(page)
    assert len(titles) > 40
    for file, title in titles:
        path = PEER / file if file.endswith(".go") else PEER / "node" / file
        if not _has_title(path.read_text() if path.is_file() else "", title):
            problems.append(f"{file} has no '{title}'")
    for suite, pattern in (("go", _GO_TEST), ("python", _PYTHON_TEST)):
        named = pattern.findall(page)
        assert named
        absent = (PEER / "suites" / f"{suite}_absent.txt").read_text()
        problems += [f"{name} is left out" for name in named if f"\n{name}:" in absent]
    assert not problems, report(problems)


def _has_title(source: str, title: str) -> bool:
    """Whether a test has that title, of which a variable may be a part."""
    titles = re.findall(r"""(?:test|play)\((['"`])(.+?)\1""", source)
    return any(
        re.fullmatch(re.sub(r"\\\$\\\{\w+\\\}", ".+", re.escape(each)), title)
        or each.endswith(title)
        or each.startswith(f"{title}, ")
        for _, each in titles
    )


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
