"""Each verdict has a name, a colour and a letter of its own."""

from __future__ import annotations

import pytest

from headgate.cli.explain.causes import CAUSES, cause_color, cause_letter, cause_name
from headgate.flow.account.verdict import Verdict


def test_every_verdict_is_listed() -> None:
    assert set(CAUSES) == {verdict.value for verdict in Verdict} | {"SETTLING"}


@pytest.mark.parametrize("place", [0, 2], ids=["name", "letter"])
def test_without_colours_they_differ(place: int) -> None:
    values = [cause[place] for cause in CAUSES.values()]
    assert len(set(values)) == len(values)


def test_a_verdict_of_a_newer_broker() -> None:
    assert cause_name("MOON") == "MOON"
    assert (cause_color("MOON"), cause_letter("MOON")) == ("red", "x")
