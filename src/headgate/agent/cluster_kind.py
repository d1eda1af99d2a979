"""What answers at an admin URL: Headgate, Apache Pulsar, or neither."""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple

from headgate.access.admin_api import AccessRefusedError
from headgate.agent.cluster_client import ClusterClient, NotABrokerError
from headgate.agent.questions import VERSION

TESTED: Final = "4.0.8"
"""The release of Apache Pulsar that the agent is tested with."""
OLDEST: Final = (2, 8)
"""Before it the admin API has no effective limits (``applied=true``)."""

_HEADGATE: Final = "/admin/v2/headgate/explain?count=1"
_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})[\w.+-]{0,60}")
_SHOWN_MAX: Final = 40


class Product(enum.Enum):
    """Who made the broker."""

    HEADGATE = "Headgate"
    PULSAR = "Apache Pulsar"


class ClusterKind(NamedTuple):
    """What a cluster runs."""

    product: Product
    version: str

    @property
    def caution(self) -> str:
        """One sentence on a release that is not tested; empty for one that is."""
        if self.product is Product.HEADGATE or self.version == TESTED:
            return ""
        known = _VERSION.fullmatch(self.version)
        numbers = (int(known[1]), int(known[2])) if known else (0, 0)
        if numbers < OLDEST:
            return (
                f"Apache Pulsar {self.version} is older than {OLDEST[0]}.{OLDEST[1]}: much that "
                "the agent asks is not there, and stays unknown"
            )
        return (
            f"Apache Pulsar {self.version}: tested is {TESTED}; what this release does not tell "
            "stays unknown"
        )


def cluster_kind(client: ClusterClient) -> ClusterKind:
    """Ask what answers. Every role of the cluster may.

    Raises:
        NotABrokerError: it is neither. The text is one sentence.
        HeadgateError: as :meth:`ClusterClient.get`.
    """
    reply = client.get(VERSION)
    text = reply.body[:200].decode(errors="replace").strip().strip('"')
    if not reply.is_ok or not _VERSION.fullmatch(text):
        shown = f"version {text[:_SHOWN_MAX]!r}" if reply.is_ok else f"status {reply.status}"
        raise NotABrokerError(
            f"{client.url} is neither Headgate nor Apache Pulsar ({VERSION} answers with {shown}): "
            "--admin-url must name a broker's admin API"
        )
    try:
        is_headgate = client.get(_HEADGATE).is_ok
    except AccessRefusedError:
        # A role that may read the version is refused by the route alone, so there is one.
        is_headgate = True
    return ClusterKind(Product.HEADGATE if is_headgate else Product.PULSAR, text)
