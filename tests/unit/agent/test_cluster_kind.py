"""Headgate, Pulsar and neither."""

from __future__ import annotations

import pytest

from headgate.agent.cluster_client import NotABrokerError
from headgate.agent.cluster_kind import ClusterKind, Product, cluster_kind
from headgate.agent.transport import RawReply
from headgate.testing.fake_cluster import FakeCluster, Faults
from tests.unit.agent.clusters import BROKERS, Setting


@pytest.mark.parametrize("version", ["4.0.8", "3.3.1-SNAPSHOT", "4.0.8.1", "5.0.0-M1"])
def test_pulsar_by_its_version(version: str) -> None:
    setting = Setting(FakeCluster(BROKERS, version=version))
    assert cluster_kind(setting.client) == ClusterKind(Product.PULSAR, version)


def test_headgate_by_its_own_answer() -> None:
    setting = Setting()
    plain = setting.transport._answer

    def answer(broker: str, path: str, url: str) -> RawReply:
        if path == "/admin/v2/headgate/explain":
            return RawReply(200, {}, b"{}")
        return plain(broker, path, url)

    setting.transport._answer = answer  # type: ignore[method-assign]
    assert cluster_kind(setting.client).product is Product.HEADGATE


def test_a_role_that_may_not_ask_headgate_finds_headgate() -> None:
    faults = Faults(refused=lambda path, _: 403 if "headgate" in path else None)
    assert cluster_kind(Setting(faults=faults).client).product is Product.HEADGATE


@pytest.mark.parametrize("text", ["", "hello", '{"version": 4}', "4", "4.0" + "9" * 100])
def test_another_server_is_neither(text: str) -> None:
    setting = Setting(FakeCluster(BROKERS, version=text))
    with pytest.raises(NotABrokerError, match="is neither Headgate nor Apache Pulsar") as caught:
        cluster_kind(setting.client)
    assert len(str(caught.value)) < 300


def test_a_server_without_the_path_is_neither() -> None:
    with pytest.raises(NotABrokerError, match="answers with status 503"):
        cluster_kind(Setting(faults=Faults(status=503)).client)


def test_a_release_that_is_not_tested_says_so() -> None:
    assert ClusterKind(Product.PULSAR, "4.0.8").caution == ""
    assert ClusterKind(Product.HEADGATE, "1.0").caution == ""
    assert "tested is 4.0.8" in ClusterKind(Product.PULSAR, "4.1.0").caution
    assert "older than 2.8" in ClusterKind(Product.PULSAR, "2.7.5").caution
