"""The identity of a cluster, by what its admin API answers."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline import cluster_identity as module
from headgate.pipeline.cluster_identity import (
    UnknownClusterError,
    cluster_identities,
    cluster_identity,
    is_headgate,
)
from headgate.pipeline.options import SourceOptions
from pyspark_pulsar.errors import AccessError, UnreachableError
from pyspark_pulsar.options import Connection


class Answers:
    """An admin API with these documents."""

    def __init__(self, **documents: Any) -> None:
        self._documents = documents

    def document(self, path: str) -> Any:
        return self._documents.get(path.partition("?")[0].rpartition("/")[2])


def test_a_headgate_broker_is_its_data_directory() -> None:
    assert cluster_identity(Answers(identity={"cluster": "c", "dataId": "ab"})) == "headgate:ab"


def test_a_headgate_broker_of_an_earlier_release_is_refused() -> None:
    """By its cluster's name alone it would be the same as any other."""
    with pytest.raises(UnknownClusterError, match="run this release of Headgate"):
        cluster_identity(Answers(explain={"backlogs": []}, clusters=["standalone"]))


def test_a_headgate_broker_is_known_by_what_every_role_may_ask() -> None:
    class OneRole(Answers):
        def document(self, path: str) -> Any:
            if "explain" in path:
                raise AccessError("This operation requires super-user access")
            return super().document(path)

    assert is_headgate(OneRole(identity={"dataId": "ab"}))
    assert is_headgate(Answers(explain={"backlogs": []}))
    assert not is_headgate(Answers(clusters=["west"]))


def test_a_pulsar_broker_is_its_cluster() -> None:
    assert cluster_identity(Answers(clusters=["global", "west"])) == "pulsar:west"
    several = Answers(clusters=["west", "east"], runtime={"clusterName": "east"})
    assert cluster_identity(several) == "pulsar:east"
    with pytest.raises(UnknownClusterError, match="name of its cluster"):
        cluster_identity(Answers(clusters=["west", "east"]))


def test_identities_are_in_the_order_of_the_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    def admin(connection: Connection) -> Answers:
        port = connection.admin_url.rpartition(":")[2]
        if port == "3":
            raise UnreachableError("no answer")
        return Answers(identity={"dataId": port})

    monkeypatch.setattr(module, "AdminClient", admin)
    urls = ("pulsar://h:1", "pulsar://h:2")
    assert cluster_identities(SourceOptions("t", urls, ("http://h:9", "http://h:8"))) == [
        "headgate:9",
        "headgate:8",
    ]
    with pytest.raises(InputError, match="http://h:3: no answer"):
        cluster_identities(SourceOptions("t", urls, ("http://h:9", "http://h:3")))
