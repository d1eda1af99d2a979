"""The slowest tests of several reports, and reports that are missing."""

from __future__ import annotations

from pathlib import Path

from devkit.durations import Duration, failed_tests, read_report, slowest_lines

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest">
  <testcase classname="tests.a" name="test_x[1-2]" file="tests/a.py" line="1" time="1.250" />
  <testcase classname="tests.a" name="test_y" file="tests/a.py" line="9" time="0.001" />
</testsuite></testsuites>
"""


def test_a_report_names_tests_as_pytest_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    assert read_report("unit", path) == [
        Duration("unit", "tests/a.py::test_x[1-2]", 1.25),
        Duration("unit", "tests/a.py::test_y", 0.001),
    ]


def test_a_lane_that_wrote_no_report_has_no_durations(tmp_path: Path) -> None:
    assert read_report("unit", tmp_path / "missing.xml") == []


def test_failed_tests_are_named_unless_a_file_could_not_be_read(tmp_path: Path) -> None:
    path, missing = tmp_path / "report.xml", tmp_path / "missing.xml"
    path.write_text(REPORT)
    assert failed_tests(path) == failed_tests(missing) == []
    failed = REPORT.replace('"1.250" />', '"1.250"><failure message="1 == 2" /></testcase>')
    path.write_text(failed)
    assert failed_tests(path) == ["tests/a.py::test_x[1-2]"]
    error = '"0.001"><error message="failed on setup with OSError" /></testcase>'
    path.write_text(failed.replace('"0.001" />', error))
    assert failed_tests(path) == ["tests/a.py::test_x[1-2]", "tests/a.py::test_y"]
    unread = '"0.001"><error message="collection failure" /></testcase>'
    path.write_text(failed.replace('"0.001" />', unread))
    assert failed_tests(path) == []


def test_the_slowest_come_first_and_no_more_than_asked() -> None:
    durations = [Duration("unit", f"tests/a.py::test_{n}", float(n % 7)) for n in range(20)]
    heading, *lines = slowest_lines(durations, 3)
    assert heading == "  slowest of 20 tests:"
    assert lines == [f"  unit           6.0 s   tests/a.py::test_{n}" for n in (6, 13)] + [
        "  unit           5.0 s   tests/a.py::test_5"
    ]
    assert [*slowest_lines([])] == []
