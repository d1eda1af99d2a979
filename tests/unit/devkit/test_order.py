"""The longest test files run first, and the list of them names files that exist."""

from __future__ import annotations

from devkit.paths import ROOT

from tests.order import LONGEST_FIRST, ordered, part_of


def test_files_that_are_named_come_first_and_others_by_their_number_of_tests() -> None:
    second, first = LONGEST_FIRST[1], LONGEST_FIRST[0]
    files = ["a.py", "b.py", second, "b.py", first, second]
    assert [files[at] for at in ordered(files)] == [first, second, second, "b.py", "b.py", "a.py"]
    assert [at for at in ordered(files) if files[at] == "b.py"] == [1, 3]


def test_every_file_that_is_named_exists_once() -> None:
    assert all((ROOT / name).is_file() for name in LONGEST_FIRST)
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)


def test_parts_share_the_files_and_the_long_ones_in_turn() -> None:
    files = [f"tests/unit/test_{number}.py" for number in range(1_000)]
    parts = [part_of(file, 2) for file in files]
    assert set(parts) == {1, 2}
    assert 400 < parts.count(1) < 600
    assert [part_of(file, 3) for file in LONGEST_FIRST[:4]] == [1, 2, 3, 1]
    assert len({part_of(f"tests/tidy/test_{number}.py", 2) for number in range(50)}) == 1
