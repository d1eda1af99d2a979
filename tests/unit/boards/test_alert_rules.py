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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_name_is_part_of_a_command_to_copy(path: Path) -> None:
    """Clients name topics and subscriptions. A shell would run what stands in such a name."""
    read: Any = yaml.safe_load(path.read_text("utf-8"))
    texts = [
        text
        for group in read["groups"]
        for rule in group["rules"]
        for text in rule["annotations"].values()
    ]
    commands = [command for text in texts for command in re.findall("`([^`]*)`", text)]
    assert not [command for command in commands if "{{" in command]
    assert all("`" not in re.sub("`[^`]*`", "", text) for text in texts)


def test_the_page_that_explains_them_exists() -> None:
    for path in FILES:
        for alert in alerts_of(path.name.removesuffix(".rules.yml")).values():
            assert (RULES.parents[1] / "docs/guide" / alert.guide).exists()
