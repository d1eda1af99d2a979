"""Each option that is not allowed is one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.alerts.options import (
    AlertOptions,
    Credentials,
    alertmanager_url,
    shown_target,
)

AM = "http://am:9093"


def options(**more: Any) -> AlertOptions:
    return AlertOptions(**{"out": "t", "alertmanagers": (AM,), **more})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"alertmanagers": ()}, "nothing says where the alerts go: --alertmanager URL"),
        ({"webhook": "http://h/x"}, "--alertmanager and a webhook are given; one of them"),
        ({"alertmanagers": ("am:9093",)}, "--alertmanager 'am:9093': http://HOST:PORT or https"),
        ({"alertmanagers": (AM + "?x=1",)}, "--alertmanager 'http://am:9093?x=1': http://HOST"),
        ({"alertmanagers": ("http://am:0",)}, "--alertmanager 'http://am:0'"),
        ({"alertmanagers": ("http://am:99999",)}, "--alertmanager 'http://am:99999'"),
        ({"alertmanagers": ("http://h\n",)}, "--alertmanager"),
        ({"alertmanagers": (), "webhook": "ftp://h"}, "--webhook: the URL is not allowed"),
        ({"report_url": "report.html"}, "--report-url 'report.html': http://... or https://"),
        ({"kinds": ("x",)}, "--kind 'x': backlog, quota, quality, telemetry are allowed"),
        ({"count": 0}, "--alerts-max 0: 1 to 10,000 is allowed"),
        ({"labels": (("topic", "x"),)}, "--label topic=x: NAME=VALUE is allowed"),
        ({"labels": (("a-b", "x"),)}, "--label a-b=x: NAME=VALUE is allowed"),
        ({"labels": (("env", ""),)}, "--label env=: NAME=VALUE is allowed"),
        ({"after": "5"}, "--after '5' is no duration: one such as 30s, 15m, 2h or 1d"),
        ({"every": "5s"}, "--every 5s: 10s or more is allowed"),
        ({"every": "10m"}, "--expires 15m: twice --every (10m) or more is allowed"),
        ({"expires": "1s"}, "--expires 1s: 20s or more is allowed"),
        ({"out": "s3://bucket/t"}, "s3://bucket/t cannot hold the state of the alerts"),
        ({"out": "hdfs://n/t"}, "tables cannot be in hdfs://"),
        ({"work": "s3://bucket/t"}, "--work s3://bucket/t is no folder of this machine"),
        (
            {"credentials": Credentials(token="x", user="u", password="p")},
            "a token and a user (--user) are given; one of them is allowed",
        ),
        ({"credentials": Credentials(user="u")}, "--user u: a password is needed, in a file"),
        ({"credentials": Credentials(user="a:b", password="p")}, "--user 'a:b': a name without"),
        ({"credentials": Credentials(password_path="p")}, "--password-file has no effect without"),
    ],
)
def test_what_is_not_allowed(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as found:
        options(**more)
    assert str(found.value).startswith(said)
    assert "\n" not in str(found.value)


def test_all_faults_at_once_and_no_secret() -> None:
    with pytest.raises(InputError) as found:
        options(alertmanagers=("http://u:secret@am",), count=0, after="x")
    assert len(str(found.value).splitlines()) == 3
    assert "secret" not in str(found.value)
    with pytest.raises(InputError) as found:
        options(alertmanagers=(), webhook="https://u:secret@h/x")
    assert "secret" not in str(found.value)
    shown = repr(Credentials(token="secret", password="secret")) + repr(
        options(alertmanagers=(), webhook="https://h/secret")
    )
    assert "secret" not in shown


def test_what_is_allowed() -> None:
    asked = options(every="60s", labels=(("env", "a"), ("env", "b")))
    assert asked.every_ns == 60 * 10**9
    assert asked.extra_labels == {"env": "b"}
    assert options(alertmanagers=(), is_dry_run=True).every_ns is None
    assert options(out="s3://bucket/t", work="w").work == "w"
    assert options(out="s3://bucket/t", is_dry_run=True).is_dry_run


def test_urls_of_alertmanager() -> None:
    full = "http://am:9093/api/v2/alerts"
    assert alertmanager_url(AM) == alertmanager_url(AM + "/") == alertmanager_url(full) == full
    assert alertmanager_url("https://h/am") == "https://h/am/api/v2/alerts"
    assert shown_target("https://h:1/secret?key=x") == "https://h:1"
