"""URLs of ``--openlineage`` are checked before Spark starts."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.lineage_options import NO_LINEAGE, LineageOptions


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://localhost:5000", ("http://localhost:5000", "api/v1/lineage")),
        ("http://localhost:5000/", ("http://localhost:5000", "api/v1/lineage")),
        ("https://host/own/path", ("https://host", "own/path")),
        ("http://[::1]:80", ("http://[::1]:80", "api/v1/lineage")),
    ],
)
def test_urls(url: str, found: tuple[str, str]) -> None:
    assert LineageOptions(url).base_and_endpoint == found


@pytest.mark.parametrize(
    "url",
    ["", "localhost:5000", "ftp://host", "http://", "http://host:0", "http://host:70000",
     "http://ho st", "http://host/a?b=c", "http://host/#a", "http://[::1"],
)  # fmt: skip
def test_other_urls_are_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(InputError) as caught:
        LineageOptions(url)
    assert str(caught.value) == (
        f"--openlineage {url!r}: http://HOST:PORT or https://HOST is allowed, with a path unless it"
        " is /api/v1/lineage"
    )


def test_no_secret_is_repeated() -> None:
    with pytest.raises(InputError) as caught:
        LineageOptions("http://me:secret@host")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(LineageOptions("http://host", "secret"))


def test_without_a_url_there_are_no_events() -> None:
    assert NO_LINEAGE.url is None
