"""The reader of the rules gives what YAML gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from boards.alert_rules import RULES, alerts_of

FILES = sorted(RULES.glob("*.rules.yml"))


def spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_reads_the_files_as_yaml_does(path: Path) -> None:
    read: Any = yaml.safe_load(path.read_text("utf-8"))
    rules = [rule for group in read["groups"] for rule in group["rules"]]
    found = alerts_of(path.name.removesuffix(".rules.yml"))
    assert [(each.name, spaced(each.expression)) for each in found.values()] == [
        (rule["alert"], spaced(rule["expr"])) for rule in rules
    ]


def test_the_page_that_explains_them_exists() -> None:
    for path in FILES:
        for alert in alerts_of(path.name.removesuffix(".rules.yml")).values():
            assert (RULES.parents[1] / "docs/guide" / alert.guide).exists()
