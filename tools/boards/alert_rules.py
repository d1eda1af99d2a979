"""The alerts of ``deploy/prometheus/``, whose expressions the boards plot."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from committed_files import ROOT

RULES: Final = ROOT / "deploy/prometheus"
_GUIDE: Final = re.compile(r"what to do: docs/guide/(\S+\.md)")


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule."""

    name: str
    expression: str
    guide: str
    """The page of docs/guide/ that says what to do."""


def alerts_of(name: str) -> dict[str, Alert]:
    """The alerts of ``deploy/prometheus/NAME.rules.yml`` by name, in the order of the file.

    The files have one form, so that this needs no library for YAML: ``- alert: NAME``, and an
    ``expr`` in the same line or folded below it.
    """
    text = (RULES / f"{name}.rules.yml").read_text("utf-8")
    guide = _GUIDE.search(text)
    if guide is None:
        raise ValueError(f"{name}.rules.yml names no page that says what to do")
    found = {}
    for part in text.split("- alert: ")[1:]:
        lines = part.splitlines()
        at = next(n for n, line in enumerate(lines) if line.strip().startswith("expr:"))
        indent = len(lines[at]) - len(lines[at].lstrip())
        first = lines[at].strip().removeprefix("expr:").strip()
        folded = [first] if first != ">-" else []
        for line in lines[at + 1 :]:
            if len(line) - len(line.lstrip()) <= indent:
                break
            folded.append(line.strip())
        found[lines[0].strip()] = Alert(lines[0].strip(), " ".join(folded), guide[1])
    return found
