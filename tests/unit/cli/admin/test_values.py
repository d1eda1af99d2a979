"""Values of parameters, and the errors for wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from headgate.base.names import NamespaceName
from headgate.base.units import INT64_MAX
from headgate.cli.admin import values


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (values.int32, "-1", -1),
        (values.int32, "+7", 7),
        (values.int32, "2147483647", 2147483647),
        (values.int64, str(INT64_MAX), INT64_MAX),
        (values.int64, str(-INT64_MAX - 1), -INT64_MAX - 1),
        (values.time_s, "90", 90),
        (values.time_s, "-1", -1),
        (values.time_s, "10m", 600),
        (values.time_s, "2D", 172_800),
        (values.time_s, "1w", 604_800),
        (values.time_s, "1y", 31_536_000),
        (values.size_bytes, "4096", 4096),
        (values.size_bytes, "100K", 102_400),
        (values.size_bytes, "2t", 2 << 40),
        (values.instant_ms, "1970-01-01T00:00:01.5Z", 1_500),
        (values.instant_ms, "1970-01-01T01:00:00+01:00", 0),
        (values.instant_ms, "2004-06-14T12:00:00.478Z", 1_087_214_400_478),
        (values.namespace, "t/n", NamespaceName("t", "n")),
        (values.message_id, "8:5", (8, 5)),
        (values.message_id, "latest", (INT64_MAX, INT64_MAX)),
        (values.message_id, "earliest", (-1, -1)),
        (values.pairs, "a=1,b=x=y,c=", {"a": "1", "b": "x=y", "c": ""}),
        (values.names, "a, b", ["a", "b"]),
        (values.topic_domain, "Non_Persistent", "non_persistent"),
        (values.topic_mode, "all", "ALL"),
    ],
)
def test_values(read: Callable[[str], Any], text: str, value: Any) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("persistent://t/n/x", "persistent://t/n/x"),
        ("t/n/x-partition-1", "persistent://t/n/x-partition-1"),
        ("x", "persistent://public/default/x"),
    ],
)
def test_topics_have_full_and_short_names(text: str, full: str) -> None:
    assert values.topic(text).full == full


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (values.int32, "abc", "'abc' is not an int"),
        (values.int32, "2147483648", "'2147483648' is not an int"),
        (values.int32, "1_0", "'1_0' is not an int"),
        (values.int64, "1M", "'1M' is not a long"),
        (values.int64, "9223372036854775808", "is not a long"),
        (values.time_s, "10x", "'10x' is not a time such as 90, 90s, 10m"),
        (values.size_bytes, "1.5G", "'1.5G' is not a size such as 4096, 100K"),
        (values.instant_ms, "2026-06-28T16:53:08", "is not a time with its offset"),
        (values.instant_ms, "yesterday", "is not a time with its offset"),
        (values.namespace, "t", "tenant/namespace is allowed"),
        (values.topic, "a/b", "Invalid topic name 'a/b'"),
        (values.topic, "non-persistent://t/n/x", "Need to provide a persistent topic name"),
        (values.message_id, "8", "is not latest, earliest or ledgerId:entryId"),
        (values.pairs, "a", "'a' is not key=value"),
        (values.names, "a,,b", "has an empty name"),
        (values.topic_mode, "some", "one of [PERSISTENT, NON_PERSISTENT, ALL] but was 'some'"),
    ],
)
def test_what_cannot_be_is_named(read: Callable[[str], Any], text: str, said: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        read(text)
    assert said in caught.value.message
