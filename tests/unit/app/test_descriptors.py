"""The limit of file descriptors of a process."""

from __future__ import annotations

import resource

import pytest

from headgate.app.descriptors import descriptors_max, raise_descriptors_max


@pytest.mark.parametrize(("soft", "limit"), [(1_024, 1_024), (resource.RLIM_INFINITY, None)])
def test_the_soft_limit_counts(
    soft: int, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, resource.RLIM_INFINITY))
    assert descriptors_max() == limit


def test_as_many_files_as_the_system_allows() -> None:
    saved = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, saved[1]), saved[1]))
        raise_descriptors_max()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (saved[1], saved[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, saved)
