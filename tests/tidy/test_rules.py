"""Every rule of docs/flow-laws.md has tests that name it: of the code, and with real clients."""

from __future__ import annotations

import re

from tests.tidy.tree import ROOT, report

LAWS = ROOT / "docs/flow-laws.md"
PLACES = {
    "a unit test or a simulation": ("unit/flow", "unit/engine", "unit/broker", "sim"),
    "a test with real clients": ("service",),
}
_SECTION = re.compile(r"^## (\d+)\.")
_RULE = re.compile(r"^(\d+)\. ")
_NAMED = re.compile(r"[Rr]ules? ((?:\d+\.\d+(?:, | and )?)+)")


def test_every_rule_is_named_by_tests() -> None:
    rules = _rules()
    assert {"1.1", "1.9", "2.1", "2.4"} <= rules
    problems = []
    for place, folders in PLACES.items():
        named = set().union(*(_named_in(folder) for folder in folders))
        problems += [f"rule {rule} is named by no docstring of {place}" for rule in rules - named]
        problems += [f"{place} names rule {rule}, which is none" for rule in named - rules]
    assert not problems, report(sorted(problems))


def _rules() -> set[str]:
    rules, section = set(), ""
    for line in LAWS.read_text().splitlines():
        if match := _SECTION.match(line):
            section = match[1]
        elif section and (match := _RULE.match(line)):
            rules.add(f"{section}.{match[1]}")
    return rules


def _named_in(folder: str) -> set[str]:
    named: set[str] = set()
    for path in (ROOT / "tests" / folder).rglob("test_*.py"):
        for match in _NAMED.finditer(path.read_text()):
            named |= set(re.findall(r"\d+\.\d+", match[1]))
    return named
