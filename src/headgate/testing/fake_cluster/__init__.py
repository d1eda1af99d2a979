"""A Pulsar cluster in memory, for whoever looks at one through its admin API.

:class:`FakeCluster` has brokers and topics, whose figures follow from the time alone, so days pass
in seconds; ``pulsar_json`` writes them as Pulsar does. :class:`FakeTransport` stands where sockets
stand, with :class:`Faults` on the way. :class:`InlineExecutor` runs requests at once, in virtual
time. ``bridge`` asks a simulated Headgate broker as if it were Pulsar.
"""

from headgate.testing.fake_cluster.cluster import FakeCluster, FakeSubscription, FakeTopic
from headgate.testing.fake_cluster.executor import InlineExecutor
from headgate.testing.fake_cluster.faults import Faults
from headgate.testing.fake_cluster.transport import FakeTransport

__all__ = [
    "FakeCluster",
    "FakeSubscription",
    "FakeTopic",
    "FakeTransport",
    "Faults",
    "InlineExecutor",
]
