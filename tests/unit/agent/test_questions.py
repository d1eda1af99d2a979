"""The paths that the agent asks, and the guide that lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.agent.cluster_client import LOOKUP_PATH
from headgate.agent.look_plan import LookKind
from headgate.agent.questions import (
    BROKERS,
    SETTINGS,
    SURVEY,
    VERSION,
    limits_paths,
    namespace_path,
    path_of,
    quotas_path,
    subscription_limit_path,
)

TOPIC = "persistent://acme/shop/or ders?x"
PARTITION = "persistent://acme/shop/orders-partition-3"
GUIDE = Path(__file__).parents[3] / "docs/guide/ask-your-own-cluster.md"


@pytest.mark.parametrize(
    ("kind", "subject", "path"),
    [
        (LookKind.BROKERS, "", "/admin/v2/brokers"),
        (LookKind.SURVEY, "b:1", "/admin/v2/broker-stats/topics"),
        (LookKind.TOPICS, "acme/shop", "/admin/v2/persistent/acme/shop"),
        (LookKind.PARTITIONS, TOPIC, "/admin/v2/persistent/acme/shop/or%20ders%3Fx/partitions"),
        (LookKind.PROOF, PARTITION,
         "/admin/v2/persistent/acme/shop/orders-partition-3/internalStats"),
    ],
)  # fmt: skip
def test_each_kind_has_its_path(kind: LookKind, subject: str, path: str) -> None:
    assert path_of(kind, subject) == path


def test_a_close_look_also_asks_for_publishers_and_bytes() -> None:
    close = path_of(LookKind.STATS, PARTITION)
    far = path_of(LookKind.STATS, PARTITION, is_close=False)
    assert "subscriptionBacklogSize=true" in close
    assert "excludePublishers" not in close
    assert "subscriptionBacklogSize=false&excludePublishers=true" in far
    assert all("getPreciseBacklog=false" in path for path in (close, far))


def test_a_partition_has_the_policies_of_its_topic() -> None:
    path = "/admin/v2/persistent/acme/shop/orders"
    assert set(limits_paths(PARTITION).values()) == {
        f"{path}/dispatchRate", f"{path}/subscriptionDispatchRate", f"{path}/publishRate",
    }  # fmt: skip
    assert subscription_limit_path(PARTITION, "a/b") == f"{path}/a%2Fb/dispatchRate"
    assert namespace_path(PARTITION) == "/admin/v2/namespaces/acme/shop"


def test_the_guide_lists_everything_that_is_asked() -> None:
    text = GUIDE.read_text()
    asked = [path_of(kind, BROKER_OR_TOPIC[kind]) for kind in BROKER_OR_TOPIC]
    asked += [*limits_paths(TOPIC).values(), subscription_limit_path(TOPIC, "s"), VERSION, SETTINGS]
    asked.append(quotas_path("acme/shop"))
    for path in asked:
        last = path.partition("?")[0].rpartition("/")[2]
        assert f"/{last}`" in text or f"`{last}`" in text, path
    for path in (BROKERS, SURVEY, "/admin/v2/namespaces/", "/admin/v2/persistent/", LOOKUP_PATH):
        assert path in text


BROKER_OR_TOPIC = {
    LookKind.PARTITIONS: TOPIC,
    LookKind.STATS: TOPIC,
    LookKind.PROOF: TOPIC,
}


def test_every_kind_of_look_is_in_the_guide() -> None:
    others = {
        LookKind.BROKERS, LookKind.SURVEY, LookKind.TOPICS, LookKind.SWEEP, LookKind.LIMITS,
        LookKind.QUOTAS,
    }  # fmt: skip
    assert set(LookKind) == others | BROKER_OR_TOPIC.keys()
