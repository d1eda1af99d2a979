"""Links between the pages lead somewhere, down to the heading."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tidy.tree import ROOT, project_files, report

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def test_links_lead_somewhere() -> None:
    problems = []
    for page in project_files():
        if page.suffix != ".md":
            continue
        for target in _LINK.findall(_CODE.sub("", page.read_text())):
            if "://" in target or target.startswith("mailto:"):
                continue
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            if not found.exists():
                problems.append(f"{page.relative_to(ROOT)}: {target} is not there")
            elif anchor and anchor not in _anchors(found):
                problems.append(f"{page.relative_to(ROOT)}: {target} has no such heading")
    assert not problems, report(problems)


def _anchors(page: Path) -> set[str]:
    """Headings as the usual hosts turn them into anchors."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(page.read_text())
    }
