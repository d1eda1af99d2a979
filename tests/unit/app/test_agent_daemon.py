"""What ``headgate agent`` makes of its settings; ``tests/service/test_agent_daemon.py`` runs it."""

from __future__ import annotations

from headgate.access.client_config import ClientConfig
from headgate.agent.configuration import AgentSettings, ClusterSettings
from headgate.app.agent_daemon import own_topics

URL, OTHER = "pulsar://a:6650", "pulsar://b:6650"


def cluster(name: str, broker_url: str, topic: str = "", url: str = "") -> ClusterSettings:
    config = ClientConfig("http://a:8080", broker_url=broker_url)
    return ClusterSettings(name, config, (), 50, topic, url)


def test_the_topics_of_the_agents_own_telemetry_are_left_out_where_they_are() -> None:
    one = cluster("one", URL, "persistent://ops/headgate/telemetry-partition-0", URL)
    two = cluster("two", OTHER, "ops/headgate/two", URL)
    settings = AgentSettings((one, two))
    assert own_topics(one, settings) == {
        "persistent://ops/headgate/telemetry", "persistent://ops/headgate/two",
    }  # fmt: skip
    assert own_topics(two, settings) == frozenset()
