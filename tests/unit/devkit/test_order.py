"""The longest test files run first, and the list of them names files that exist."""

from __future__ import annotations

from devkit.paths import ROOT

from tests.order import LONGEST_FIRST, ordered


def test_files_that_are_named_come_first_and_others_by_their_number_of_tests() -> None:
    second, first = LONGEST_FIRST[1], LONGEST_FIRST[0]
    files = ["a.py", "b.py", second, "b.py", first, second]
    assert [files[at] for at in ordered(files)] == [first, second, second, "b.py", "b.py", "a.py"]
    assert [at for at in ordered(files) if files[at] == "b.py"] == [1, 3]


def test_every_file_that_is_named_exists_once() -> None:
    assert all((ROOT / name).is_file() for name in LONGEST_FIRST)
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)
