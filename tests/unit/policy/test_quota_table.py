"""Which backlog quotas are in force on a topic, where they are set, and how REST shows them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import GIB
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, QuotaPolicy, QuotaType
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.policies import BacklogQuota, QuotaKind, Retention
from headgate.policy import quota_table as quotas
from headgate.policy.quota_table import NOT_LIMITED, QuotaTable
from headgate.policy.settings import Settings

T = parse_topic("t")
OTHER = parse_topic("other")
NS = T.namespace
SIZE: QuotaKind = "destination_storage"
AGE: QuotaKind = "message_age"


class Rig:
    """A table over a catalog whose changes are applied at once."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.catalog = Catalog("standalone", {})
        self.table = QuotaTable(self.catalog, self.settings)
        self._apply(self.catalog.plan_first_boot())
        for topic in (T, OTHER):
            self._apply(self.catalog.plan_create_topic(topic, now_ms=1))

    def _apply(self, change: Change | None) -> None:
        assert change is not None
        self.catalog.apply(change)

    def on_topic(self, kind: QuotaKind, quota: BacklogQuota | None) -> None:
        self._apply(self.catalog.plan_topic_quota(T, kind, quota, broker_retention=Retention()))

    def on_namespace(self, kind: QuotaKind, quota: BacklogQuota | None) -> None:
        self._apply(self.catalog.plan_namespace_quota(NS, kind, quota))

    def sources(self) -> list[str]:
        """Where the quotas in force are set, by type."""
        return [self.table.effective(T, kind).source for kind in QuotaType]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def hold(limit_size: int = -1, limit_time: int = -1) -> BacklogQuota:
    return BacklogQuota("producer_request_hold", limit_size, limit_time)


def test_without_any_there_is_none(rig: Rig) -> None:
    assert rig.table.of_topic(T) == NO_QUOTAS
    assert rig.table.applied(T) == NOT_LIMITED == {SIZE: hold(), AGE: hold()}


def test_each_type_is_found_separately(rig: Rig) -> None:
    rig.settings.backlogQuotaDefaultLimitBytes = 1_000
    rig.settings.backlogQuotaDefaultLimitSecond = 10
    rig.settings.backlogQuotaDefaultRetentionPolicy = "consumer_backlog_eviction"
    evict = BacklogQuota("consumer_backlog_eviction", 1_000)
    assert rig.table.applied(T) == {
        SIZE: evict, AGE: BacklogQuota("consumer_backlog_eviction", -1, 10),
    }  # fmt: skip
    rig.on_namespace(AGE, hold(7, 20))
    rig.on_topic(SIZE, BacklogQuota("producer_exception", 5, 30))
    assert rig.sources() == ["topic policy", "namespace policy public/default"]
    assert rig.table.of_topic(T) == (
        Quota(QuotaType.SIZE, 5, QuotaPolicy.EXCEPTION, "topic policy"),
        Quota(QuotaType.TIME, 20_000, QuotaPolicy.HOLD, "namespace policy public/default"),
    )
    # The limit that does not count for the type is not shown as enforced.
    assert rig.table.applied(T) == {
        SIZE: BacklogQuota("producer_exception", 5), AGE: hold(-1, 20),
    }  # fmt: skip
    assert rig.table.applied(OTHER) == {SIZE: evict, AGE: hold(-1, 20)}
    rig.on_topic(SIZE, None)
    assert rig.sources()[0] == "broker setting backlogQuotaDefaultLimitBytes"


def test_a_quota_without_limit_takes_wider_ones_away(rig: Rig) -> None:
    rig.on_namespace(SIZE, hold(9))
    rig.on_topic(SIZE, hold(-5))
    assert rig.table.of_topic(T) == NO_QUOTAS
    assert rig.table.applied(T)[SIZE] == hold(-5)


@pytest.mark.parametrize(
    ("settings", "limit", "key"),
    [
        ({"backlogQuotaDefaultLimitGB": "2"}, 2 * GIB, "backlogQuotaDefaultLimitGB"),
        ({"backlogQuotaDefaultLimitGB": "0.5"}, GIB // 2, "backlogQuotaDefaultLimitGB"),
        ({"backlogQuotaDefaultLimitGB": "1e-12"}, 1, "backlogQuotaDefaultLimitGB"),
        ({"backlogQuotaDefaultLimitGB": "1", "backlogQuotaDefaultLimitBytes": "7"}, GIB,
         "backlogQuotaDefaultLimitGB"),
        ({"backlogQuotaDefaultLimitGB": "0", "backlogQuotaDefaultLimitBytes": "7"}, 7,
         "backlogQuotaDefaultLimitBytes"),
        ({"backlogQuotaDefaultLimitBytes": "0"}, 0, "backlogQuotaDefaultLimitBytes"),
    ],
)  # fmt: skip
def test_the_brokers_limit_in_bytes(
    rig: Rig, settings: Mapping[str, str], limit: int, key: str
) -> None:
    for name, text in settings.items():
        rig.settings.set(name, text)
    found = rig.table.of_topic(T).size
    assert found == Quota(QuotaType.SIZE, limit, QuotaPolicy.HOLD, f"broker setting {key}")


def test_topics_with_the_same_quotas_share_them_up_to_a_number(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.on_namespace(SIZE, hold(9))
    shared = rig.table.of_topic(T)
    assert rig.table.of_topic(OTHER) is shared
    monkeypatch.setattr(quotas, "SHARED_MAX", 1)
    rig.on_topic(SIZE, hold(5))
    assert rig.table.of_topic(T) != shared
    assert rig.table.of_topic(OTHER) == shared
    assert rig.table.of_topic(OTHER) is not shared


@pytest.mark.parametrize("quota", [hold(-1, 0), hold(-1, -7), hold()])
def test_no_seconds_are_no_limit_and_hide_wider_ones(rig: Rig, quota: BacklogQuota) -> None:
    """Rule 4.8: 0, negative, or left out."""
    rig.settings.backlogQuotaDefaultLimitSecond = 60
    rig.on_namespace(AGE, hold(-1, 30))
    rig.on_topic(AGE, quota)
    assert rig.table.of_topic(T) == NO_QUOTAS
    assert rig.sources()[1] == "topic policy"


def test_no_bytes_are_a_limit_that_blocks_everybody(rig: Rig) -> None:
    """Rule 4.8: an explicit 0 keeps Pulsar's meaning."""
    rig.on_topic(SIZE, hold(0))
    assert rig.table.of_topic(T).size == Quota(QuotaType.SIZE, 0, QuotaPolicy.HOLD, "topic policy")


def test_partitions_have_the_quotas_of_their_topic(rig: Rig) -> None:
    """Rule 4.8: each by itself, as it is enforced."""
    parted = parse_topic("parted")
    rig._apply(rig.catalog.plan_create_partitioned(parted, 2, now_ms=1))
    rig._apply(rig.catalog.plan_topic_quota(parted, SIZE, hold(9), broker_retention=Retention()))
    for partition in range(2):
        found = rig.table.of_topic(parse_topic(f"parted-partition-{partition}")).size
        assert found == Quota(QuotaType.SIZE, 9, QuotaPolicy.HOLD, "topic policy")
