"""The result of a request follows from the status of its answer."""

from __future__ import annotations

import pytest

from headgate.base.audit_entry import AuditResult, result_of


@pytest.mark.parametrize(
    ("status", "result"),
    [(0, "allowed"), (204, "allowed"), (400, "refused"), (403, "refused"), (412, "refused"),
     (500, "failed"), (503, "failed")],
)  # fmt: skip
def test_the_result_of_a_status(status: int, result: str) -> None:
    assert result_of(status) is AuditResult(result)
