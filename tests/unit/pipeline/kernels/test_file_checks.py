"""Results survive the footer, and add up over files."""

from __future__ import annotations

import json

from headgate.pipeline.kernels.file_checks import CheckResult, FileChecks, added_up

FAILED = CheckResult(10, 2, ("a", "b"), {"topic": "t", "partition": None}, 5, 9)


def test_results_are_read_as_they_were_written() -> None:
    checks = FileChecks(10, {"good": CheckResult(10), "bad": FAILED}, {"acked": -3}, (1, 2**64 - 1))
    assert FileChecks.decoded(checks.encoded()) == checks
    assert len(FileChecks(10, {"good": CheckResult(10)}).encoded()) < 100


def test_a_later_form_is_not_read() -> None:
    value = json.loads(FileChecks(1).encoded()) | {"form": 2}
    assert FileChecks.decoded(json.dumps(value).encode()) is None
    assert FileChecks.decoded(b"{}") is None


def test_the_order_of_files_changes_nothing() -> None:
    one = CheckResult(1, 1, ("a",), {"topic": None, "minute": "10:01"}, 1, 1)
    other = CheckResult(1, 1, ("a",), {"topic": "t", "minute": "10:02"}, 2, 2)
    assert one + other == other + one == CheckResult(2, 2, ("a",), other.example, 1, 2)


def test_files_add_up() -> None:
    later = CheckResult(5, 1, ("b", "c"), {"topic": "u"}, 1, 7)
    parts = [FileChecks(5, {"x": CheckResult(5)}), FileChecks(10, {"x": FAILED}),
             FileChecks(5, {"x": later, "y": CheckResult(1)})]  # fmt: skip
    assert added_up(parts) == {
        "x": CheckResult(20, 3, ("a", "b", "c"), {"topic": "t", "partition": None}, 1, 9),
        "y": CheckResult(1),
    }
