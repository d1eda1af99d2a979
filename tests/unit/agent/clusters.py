"""A fake cluster with a client, for tests of the agent."""

from __future__ import annotations

from headgate.access.client_config import ClientConfig
from headgate.agent.cluster_client import ClusterClient
from headgate.testing.clock import ManualClock
from headgate.testing.fake_cluster import FakeCluster, FakeTransport, Faults

URL = "http://balancer:8080"
BROKERS = [f"broker-{index}:8080" for index in range(4)]
TOPIC = "persistent://acme/shop/orders"


class Setting:
    """A clock, a cluster on it, and a client of that."""

    def __init__(
        self,
        cluster: FakeCluster | None = None,
        faults: Faults | None = None,
        config: ClientConfig | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.cluster = cluster or FakeCluster(list(BROKERS))
        self.transport = FakeTransport(self.cluster, self.clock, faults)
        self.client = ClusterClient(
            config or ClientConfig(URL), {}, self.clock, transport=self.transport
        )

    @property
    def faults(self) -> Faults:
        return self.transport.faults
