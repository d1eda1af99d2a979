"""Whether and how a topic delays messages that ask for it, by its policies and settings."""

from __future__ import annotations

from typing import NamedTuple


class DelayedDelivery(NamedTuple):
    """The effective policy of delayed delivery of one topic."""

    active: bool = True
    """Whether messages are delayed; if not, they are delivered at once."""
    delay_max_ms: int = 0
    """The longest delay that a message may ask for; 0 for no limit."""


DEFAULT_DELAYED_DELIVERY = DelayedDelivery()
