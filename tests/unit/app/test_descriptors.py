"""The limit of file descriptors that is in force."""

from __future__ import annotations

import resource

import pytest

from headgate.app.descriptors import descriptors_max


@pytest.mark.parametrize(("soft", "told"), [(1_024, 1_024), (resource.RLIM_INFINITY, None)])
def test_the_soft_limit_counts(
    soft: int, told: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, resource.RLIM_INFINITY))
    assert descriptors_max() == told
