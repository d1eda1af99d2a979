"""Failures of the engine in the statuses of the admin API."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.engine.errors import (
    DamagedError,
    SubscriptionBusyError,
    TopicFencedError,
)
from headgate.facade.refusals import refusals
from headgate.metadata.errors import RefusalError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SubscriptionBusyError("busy"), 412),
        (DamagedError("t", "entry 1"), 500),
        (CorruptionError("entry 1"), 500),
        (TopicFencedError("closing"), 503),
    ],
)
def test_each_failure_has_its_status(error: Exception, status: int) -> None:
    with pytest.raises(RefusalError) as caught, refusals():
        raise error
    assert (caught.value.status, caught.value.reason) == (status, str(error))
