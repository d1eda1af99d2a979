"""A setting reads its own texts and says what it allows."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from headgate.policy.setting_info import (
    SettingError,
    SettingInfo,
    TextRule,
    count_setting,
    names_of,
    rate_setting,
    setting,
    share_setting,
)


def _second_word(text: str) -> str:
    return f"{text.split()[1]!r} is one too many" if " " in text else ""


@dataclass
class Some:
    flag: bool = setting(True, "A flag.")
    count: int = setting(3, "A count.", minimum=1, maximum=9)
    mode: str = setting("a", "A mode.", choices=("a", "b"))
    name: str = setting("", "A name.", rule=TextRule("one word", _second_word))
    rate: int = rate_setting("A rate.", maximum=50)
    most: int = count_setting("A limit on a number.")
    share: float = share_setting(0.5, "A share.", excluded=(0, 1))


INFO = {f.name: SettingInfo(name=f.name, default=f.default, **f.metadata) for f in fields(Some)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("flag", " FALSE ", False),
        ("count", "9", 9),
        ("mode", "b", "b"),
        ("name", " word ", "word"),
        ("rate", "-1", -1),
        ("most", "-1", -1),
        ("share", "1e-1", 0.1),
    ],
)
def test_an_allowed_text_is_read(name: str, text: str, value: object) -> None:
    assert INFO[name].parse(text) == value


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("flag", "1", "true or false"),
        ("count", "1_0", "an integer from 1 to 9"),
        ("mode", "c", "a or b"),
        ("rate", "51", "an integer from -1 to 50"),
        ("most", "-2", "an integer from -1 to 2147483647"),
        ("share", "1", "a number above 0 and below 1"),
    ],
)
def test_another_text_is_refused_with_the_range(name: str, text: str, allowed: str) -> None:
    assert INFO[name].allowed == allowed
    with pytest.raises(SettingError, match=rf"^{name}='{text}' is not allowed; use {allowed}$"):
        INFO[name].parse(text)


def test_rates_counts_and_shares_are_dynamic() -> None:
    assert [name for name, info in INFO.items() if info.dynamic] == ["rate", "most", "share"]


def test_names_with_commas_between() -> None:
    assert names_of(" a, b ,,c") == ("a", "b", "c")
    assert names_of(" ") == ()


def test_a_rule_says_what_is_wrong() -> None:
    assert INFO["name"].allowed == "one word"
    with pytest.raises(SettingError) as caught:
        INFO["name"].parse("two words")
    assert str(caught.value) == "name is not allowed: 'words' is one too many; use one word"


def test_a_refusal_does_not_repeat_a_long_value() -> None:
    """A request to the admin API got back what it had sent: 60 KB in its path and in the reason."""
    with pytest.raises(SettingError) as refusal:
        INFO["count"].parse("x" * 60_000)
    assert len(str(refusal.value)) < 200
