"""Who a broker is, as its clients see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """Who this broker is, as clients see it. Fixed once its ports are known."""

    broker_id: str
    """``host:web port``, as in ``GET /admin/v2/brokers``."""
    broker_url: str
    """``pulsar://host:port``."""
    web_url: str
    """``http://host:port``."""
    version: str
    metadata_url: str
    """Where the metadata is, as ``internal-configuration`` shows it."""
