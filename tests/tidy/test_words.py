"""Words that docs/words.md lists as dropped are gone from code and docs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.tree import ROOT, Module, project_files, report, written_modules

PAGE = ROOT / "docs" / "words.md"
KINDS = ("word", "name", "phrase")

SPARED = ("CHANGELOG.md", "CONTRIBUTING.md", "docs/words.md", "docs/decisions/", "tests/tidy/")
"""History, the pages that list the words, and this test."""

_ROW = re.compile(r"^\| `(?P<text>[^`]+)` \| (?P<kind>\w+) \| (?P<instead>[^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Dropped:
    """One row of the page."""

    text: str
    kind: str
    instead: str

    def is_in(self, text: str) -> bool:
        """Whether ``text``, with single spaces, uses it: words as written, phrases in any case."""
        pattern = rf"(?<!\w){re.escape(self.text)}(?!\w)"
        return re.search(pattern, text, re.IGNORECASE if self.kind == "phrase" else 0) is not None


def test_the_page_lists_dropped_words() -> None:
    dropped = _dropped()
    assert len(dropped) > 40
    assert {each.kind for each in dropped} <= set(KINDS)


def test_no_dropped_word_stands_in_code_or_docs() -> None:
    dropped = [each for each in _dropped() if each.kind != "name"]
    problems = []
    for path in project_files():
        where = path.relative_to(ROOT).as_posix()
        if path.suffix in (".py", ".md") and not where.startswith(SPARED):
            problems += [f"{where}: {found}" for found in _found(_plain(path), dropped)]
    assert not problems, report(problems)


def test_no_module_class_or_function_has_a_dropped_name() -> None:
    dropped = {each.text: each.instead for each in _dropped() if each.kind == "name"}
    problems = [
        f"{module.where}: {name} was dropped: {dropped[name]}"
        for module in written_modules()
        for name in _names(module)
        if name in dropped
    ]
    assert not problems, report(problems)


def test_a_word_is_found_whole_and_a_phrase_across_lines() -> None:
    word, phrase = Dropped("Told", "word", "-"), Dropped("so to say.", "phrase", "-")
    text = "A Told, So to\n    # say.  Others"
    assert [each.is_in(" ".join(re.sub(r"#", " ", text).split())) for each in (word, phrase)] == [
        True,
        True,
    ]
    assert not word.is_in("told Toldest")


def _dropped() -> list[Dropped]:
    return [Dropped(**row.groupdict()) for row in _ROW.finditer(PAGE.read_text())]


def _found(text: str, dropped: Sequence[Dropped]) -> Iterator[str]:
    lowered = text.lower()
    for each in dropped:
        if each.text.lower() in lowered and each.is_in(text):  # the first is quick
            yield f"{each.text!r} was dropped: {each.instead}"


def _plain(path: Path) -> str:
    """A file's text with sentences unbroken: comment marks and line ends are spaces."""
    return " ".join(re.sub(r"^\s*#+ ", " ", path.read_text(), flags=re.MULTILINE).split())


def _names(module: Module) -> Iterator[str]:
    yield module.name.rpartition(".")[2]
    for node in module.nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
