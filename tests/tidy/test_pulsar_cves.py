"""The page of Pulsar's CVEs has a row for each that is known. It and the other pages about security
name tests that exist."""

from __future__ import annotations

import re

from tests.tidy.tree import ROOT, report

PAGE = ROOT / "docs/security/pulsar-cves.md"
KNOWN = [
    "2021-22160", "2021-41571", "2022-24280", "2022-33681", "2022-33682", "2022-33683",
    "2022-33684", "2022-34321", "2023-30428", "2023-30429", "2023-31007", "2023-37544",
    "2023-37579", "2023-51437", "2024-27135", "2024-27317", "2024-27894", "2024-28098",
    "2024-29834", "2025-30677", "2026-105926", "2026-105927", "2026-105930", "2026-105931",
    "2026-105935", "2026-105936", "2026-105938", "2026-105945",
]  # fmt: skip
_ROW = re.compile(r"^\| CVE-(\S+) \| (.+?) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_each_known_cve_has_its_row() -> None:
    rows = [name for name, _, _ in _ROW.findall(PAGE.read_text())]
    assert rows == KNOWN


def test_each_row_names_a_test_or_what_is_not_there() -> None:
    problems = []
    for name, _, here in _ROW.findall(PAGE.read_text()):
        absent = re.search(r"\b(no|nothing|fetches no)\b", here, re.IGNORECASE)
        if not _TEST.search(here) and not absent:
            problems.append(f"CVE-{name} names no test and nothing that is absent")
    assert not problems, report(problems)


def test_each_named_test_exists() -> None:
    problems = []
    texts = [page.read_text() for page in sorted(PAGE.parent.glob("*.md"))]
    assert len(texts) > 1
    for path, name in _TEST.findall("\n".join(texts)):
        file = ROOT / path
        if not file.exists():
            problems.append(f"{path} is not there")
        elif not re.search(rf"^(async )?def {name}\(", file.read_text(), re.MULTILINE):
            problems.append(f"{path} has no {name}")
    assert not problems, report(problems)
