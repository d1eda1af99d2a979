"""The quotas of a namespace, from its own map and the broker's settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.agent.looks import QuotaLook
from headgate.agent.quota_reading import QuotaAnswers, quota_look
from headgate.agent.reading import ReadingError

NAMESPACE = "acme/orders"
GIB = 1 << 30


def read(quotas: Any, settings: dict[str, Any] | None = None) -> tuple[int | None, int | None]:
    answers = QuotaAnswers(
        None if quotas is None else json.dumps(quotas).encode(),
        None if settings is None else json.dumps(settings).encode(),
    )
    found = quota_look(NAMESPACE, 7, answers)
    assert (found.namespace, found.at_ns) == (NAMESPACE, 7)
    return found.size_bytes, found.age_s


def test_the_namespaces_quotas_come_before_the_brokers() -> None:
    settings = {"backlogQuotaDefaultLimitBytes": "500", "backlogQuotaDefaultLimitSecond": "60"}
    size = {"destination_storage": {"limitSize": 100, "limit": 7, "limitTime": -1, "policy": "x"}}
    age = {"message_age": {"limitSize": -1, "limitTime": 3_600, "policy": "x"}}
    assert read({**size, **age}, settings) == (100, 3_600)
    assert read(size, settings) == (100, 60)
    assert read(age, settings) == (500, 3_600)
    assert read({}, settings) == (500, 60)
    assert read({"destination_storage": {"limit": 7}}, settings) == (7, 60)


def test_gibibytes_of_the_broker_win_over_bytes() -> None:
    settings = {"backlogQuotaDefaultLimitGB": "1.0", "backlogQuotaDefaultLimitBytes": "500"}
    assert read({}, settings) == (GIB, None)
    assert read({}, settings | {"backlogQuotaDefaultLimitGB": "-1"}) == (500, None)


@pytest.mark.parametrize("figure", [-1, 0, None, "7", "NaN", 1e300, True, []])
def test_what_is_no_quota_is_none(figure: Any) -> None:
    settings = {"backlogQuotaDefaultLimitBytes": "500"}
    assert read({"destination_storage": {"limitSize": figure, "limit": figure}}, settings) == (
        None, None,
    )  # fmt: skip
    broker = {"backlogQuotaDefaultLimitSecond": str(figure) if figure != "7" else "x"}
    assert read({}, broker) == (None, None)


def test_a_namespace_that_may_not_be_read_has_no_known_quota() -> None:
    assert read(None, {"backlogQuotaDefaultLimitBytes": "500"}) == (None, None)
    assert quota_look(NAMESPACE, 7, QuotaAnswers(b"", None)) == QuotaLook(NAMESPACE, 7, None, None)


def test_another_answer_is_refused_in_one_sentence() -> None:
    with pytest.raises(ReadingError, match="not backlog quotas of acme/orders"):
        quota_look(NAMESPACE, 7, QuotaAnswers(b"[]", None))
    with pytest.raises(ReadingError, match="not the settings of a broker"):
        quota_look(NAMESPACE, 7, QuotaAnswers(b"{}", b"[]"))
