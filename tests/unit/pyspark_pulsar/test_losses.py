from __future__ import annotations

import pytest

from pyspark_pulsar.errors import DataLossError
from pyspark_pulsar.losses import report_loss


def test_a_loss_is_raised_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError, match=r"gone\. Set failOnDataLoss=false"):
        report_loss("gone", fail=True)
    report_loss("gone", fail=False)
    assert caplog.messages == ["gone; the query continues, because failOnDataLoss is false"]
