"""The shipped settings file conf/broker.conf, with its quick start."""

from __future__ import annotations

import re

import pytest
from committed_files import ROOT
from generate_config import COLUMNS_MAX, PATH, QUICK_START, SECTIONS, pages

from headgate.app.config_file import load_settings, parse_properties, read_config
from headgate.policy.settings import SETTINGS, Settings

SHIPPED = (ROOT / PATH).read_text()
_SETTING = re.compile(r"^#(?=\w+=)", re.MULTILINE)


def test_as_it_is_it_changes_nothing() -> None:
    assert read_config(str(ROOT / PATH)) == []


def test_every_setting_is_there_once_with_its_default() -> None:
    found = parse_properties(_SETTING.sub("", SHIPPED), PATH.name)
    assert [assignment.key for assignment in found] == list(SETTINGS)
    loaded = load_settings(found)
    assert loaded.settings == Settings()
    assert loaded.unsupported == ()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_its_help_before_it(name: str) -> None:
    before, _, _ = SHIPPED.partition(f"\n#{name}=")
    paragraph = " ".join(line.removeprefix("# ") for line in before.split("\n\n")[-1].splitlines())
    info = SETTINGS[name]
    when = ", dynamic" if info.dynamic else ""
    assert paragraph == f"{info.doc} Allowed: {info.allowed}{when}."


def test_sections_are_titled_in_the_order_of_the_settings() -> None:
    assert re.findall(r"^### --- (.*) --- ###$", SHIPPED, re.MULTILINE) == list(SECTIONS.values())
    assert [name for name in SETTINGS if name in SECTIONS] == list(SECTIONS)
    assert max(map(len, SHIPPED.splitlines())) <= COLUMNS_MAX


def test_the_quick_start_is_the_same_everywhere_and_can_be_used() -> None:
    assert f"```properties\n{QUICK_START}```\n" in (ROOT / "README.md").read_text()
    commented = "".join(f"#     {line}\n" for line in QUICK_START.splitlines())
    assert commented in SHIPPED
    settings = load_settings(parse_properties(QUICK_START, "README.md")).settings
    expected = Settings()
    expected.adaptivePublisherThrottlingEnabled = True
    expected.adaptivePublisherThrottlingObserveOnly = True
    assert settings == expected


def test_a_section_begins_at_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generate_config.SECTIONS", {"noSuchKey": "Nothing"})
    with pytest.raises(LookupError, match="noSuchKey"):
        pages()
