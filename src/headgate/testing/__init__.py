"""The testing kit: a whole broker in one test, without a socket, a thread or a sleep.

:class:`ManualClock` is time that a test advances; :class:`SimLoop` is an event loop on that time;
:class:`SimLane` and :class:`SimNetwork` simulate disks and sockets; :class:`SimClient` speaks
Pulsar's protocol; :class:`World` combines them around a broker that can lose its power and start
again. One seed decides everything, so a failure can be repeated.
"""

from headgate.testing.client import SimClient
from headgate.testing.clock import ManualClock
from headgate.testing.consumer import ReceivedMessage, SimConsumer
from headgate.testing.errors import ConnectionLostError, RefusedError
from headgate.testing.lanes import SimLane
from headgate.testing.loop import SimLoop, StalledError
from headgate.testing.producer import SimProducer
from headgate.testing.transport import NetworkProfile, SimNetwork, SimTransport
from headgate.testing.world import World

__all__ = [
    "ConnectionLostError",
    "ManualClock",
    "NetworkProfile",
    "ReceivedMessage",
    "RefusedError",
    "SimClient",
    "SimConsumer",
    "SimLane",
    "SimLoop",
    "SimNetwork",
    "SimProducer",
    "SimTransport",
    "StalledError",
    "World",
]
