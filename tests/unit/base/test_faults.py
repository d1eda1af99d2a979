"""Everything that is wrong is said in one error, each fault once."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.base.faults import Faults


def test_all_faults_are_told_at_once_and_each_once() -> None:
    faults = Faults()
    faults.add("a is 0")
    with faults.kept():
        raise InputError("b is 1")
    faults.add("a is 0")
    with pytest.raises(InputError) as caught:
        faults.raise_any()
    assert str(caught.value) == "a is 0\nb is 1"


def test_without_faults_nothing_is_raised() -> None:
    faults = Faults()
    with faults.kept():
        pass
    faults.raise_any()


def test_what_is_no_refusal_is_not_kept() -> None:
    with pytest.raises(KeyError), Faults().kept():
        raise KeyError("a bug")
