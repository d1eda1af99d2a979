"""Overrides of dynamic settings: which are in force, and which are refused."""

from __future__ import annotations

import itertools
import logging

import pytest

from headgate.policy.dynamic_settings import DynamicSettings
from headgate.policy.setting_info import SettingError
from headgate.policy.settings import WATERMARKS, Settings

LOW, HIGH = WATERMARKS[0]
RATE = "dispatchThrottlingRateInMsg"


class Rig:
    """Settings of a start, and overrides that are stored when they are allowed."""

    def __init__(self, **initial: str) -> None:
        self.settings = Settings()
        for name, text in initial.items():
            self.settings.set(name, text)
        self.dynamic = DynamicSettings(self.settings)
        self.stored: dict[str, str] = {}

    def update(self, name: str, text: str | None) -> None:
        self.dynamic.check(name, text, self.stored)
        self.stored.pop(name, None)
        if text is not None:
            self.stored[name] = text
        self.dynamic.use(self.stored)

    def watermarks(self) -> tuple[float, float]:
        return getattr(self.settings, LOW), getattr(self.settings, HIGH)


def test_an_override_is_in_force_until_it_is_gone() -> None:
    rig = Rig(**{RATE: "7"})
    rig.update(RATE, "9")
    assert rig.settings.dispatchThrottlingRateInMsg == 9
    rig.update("defaultNumPartitions", "3")
    rig.update(RATE, None)
    assert rig.settings.dispatchThrottlingRateInMsg == 7
    assert rig.settings.defaultNumPartitions == 3


def test_what_is_not_allowed_is_refused_by_itself() -> None:
    rig = Rig()
    with pytest.raises(SettingError, match=f"{RATE}='many' is not allowed"):
        rig.update(RATE, "many")
    with pytest.raises(
        SettingError, match=f"{LOW}='1' is not allowed; use a number above 0 and below"
    ):
        rig.update(LOW, "1")
    assert rig.stored == {}


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        (LOW, "0.85", f"a number above 0 and below {HIGH} (0.85)"),
        (LOW, "0.9", f"a number above 0 and below {HIGH} (0.85)"),
        (HIGH, "0.7", f"a number above {LOW} (0.7) and up to 1"),
        (HIGH, "0.1", f"a number above {LOW} (0.7) and up to 1"),
    ],
)
def test_a_watermark_may_not_cross_the_other(name: str, text: str, allowed: str) -> None:
    rig = Rig()
    with pytest.raises(SettingError) as refusal:
        rig.update(name, text)
    assert str(refusal.value) == f"{name}={text!r} is not allowed; use {allowed}"
    assert rig.watermarks() == (0.70, 0.85)


def test_a_pair_moves_in_two_updates_in_the_right_order() -> None:
    rig = Rig()
    rig.update(HIGH, "0.99")
    rig.update(LOW, "0.9")
    assert rig.watermarks() == (0.9, 0.99)
    rig.update(LOW, "0.2")
    rig.update(HIGH, "0.3")
    assert rig.watermarks() == (0.2, 0.3)


def test_the_start_up_value_is_refused_where_it_does_not_fit_any_more() -> None:
    rig = Rig()
    rig.update(HIGH, "0.99")
    rig.update(LOW, "0.9")
    with pytest.raises(
        SettingError, match=f"{HIGH}='0.85' is not allowed; use a number above {LOW}"
    ):
        rig.update(HIGH, None)
    assert rig.watermarks() == (0.9, 0.99)
    rig.update(LOW, None)
    rig.update(HIGH, None)
    assert rig.watermarks() == (0.70, 0.85)


def test_another_setting_is_not_blamed_for_a_pair() -> None:
    rig = Rig(**{LOW: "0.1", HIGH: "0.2"})
    rig.stored = {LOW: "0.5"}
    rig.update(RATE, "5")
    assert rig.settings.dispatchThrottlingRateInMsg == 5


@pytest.mark.parametrize(
    ("initial", "stored", "unused", "told"),
    [
        ({LOW: "0.3", HIGH: "0.6"}, {LOW: "0.65"}, (0.3, 0.6), [LOW]),
        ({LOW: "0.3", HIGH: "0.6"}, {HIGH: "0.2"}, (0.3, 0.6), [HIGH]),
        ({}, {LOW: "0.5", HIGH: "0.4"}, (0.70, 0.85), [LOW, HIGH]),
        ({}, {LOW: "0.3", HIGH: "0.4"}, (0.3, 0.4), []),
        ({}, {LOW: "0.9", HIGH: "0.95"}, (0.9, 0.95), []),
    ],
)
def test_stored_overrides_that_do_not_fit_the_file_are_not_used(
    caplog: pytest.LogCaptureFixture,
    initial: dict[str, str],
    stored: dict[str, str],
    unused: tuple[float, float],
    told: list[str],
) -> None:
    """Whatever order they are stored in, with one warning each."""
    for order in itertools.permutations(stored.items()):
        caplog.clear()
        rig = Rig(**initial)
        rig.dynamic.use({**dict(order), RATE: "5"})
        rig.dynamic.use({**dict(order), RATE: "6"})
        assert rig.watermarks() == unused
        assert rig.settings.dispatchThrottlingRateInMsg == 6
        texts = [record.getMessage() for record in caplog.records]
        assert [text.split("=")[0] for text in texts] == [
            f"a stored setting has no effect: {name}" for name in told
        ]
        assert all(record.levelno == logging.WARNING for record in caplog.records)


def test_an_unused_override_is_used_once_it_fits() -> None:
    """So that what is in force follows from what is stored, before a restart and after it."""
    rig = Rig(**{LOW: "0.3", HIGH: "0.6"})
    rig.stored = {LOW: "0.65"}
    rig.dynamic.use(rig.stored)
    rig.update(HIGH, "0.9")
    assert rig.watermarks() == (0.65, 0.9)
    again = Rig(**{LOW: "0.3", HIGH: "0.6"})
    again.dynamic.use(rig.stored)
    assert again.watermarks() == rig.watermarks()


def test_settings_of_another_release_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(**{RATE: "7"})
    rig.dynamic.use({"ofAnotherRelease": "1", "maxMessageSize": "2048", RATE: "many"})
    assert rig.settings.maxMessageSize == 5 * 1024 * 1024
    assert rig.settings.dispatchThrottlingRateInMsg == 7
    assert [record.getMessage() for record in caplog.records] == [
        "a stored setting has no effect: this release has no dynamic setting ofAnotherRelease",
        "a stored setting has no effect: this release has no dynamic setting maxMessageSize",
        f"a stored setting has no effect: {RATE}='many' is not allowed; use "
        "an integer from -1 to 2147483647",
    ]
    rig.dynamic.use({})
    rig.dynamic.use({RATE: "many"})
    assert len(caplog.records) == 4
