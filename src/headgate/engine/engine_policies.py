"""The policies of topics, as the engine asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.engine.delayed_delivery import DEFAULT_DELAYED_DELIVERY, DelayedDelivery
from headgate.engine.delayed_entries import DueTimeOf, never_delayed
from headgate.engine.engine_limits import UnackedLimits
from headgate.engine.send_rules import SendRules
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quotas

if TYPE_CHECKING:
    from headgate.engine.topic import Topic


@dataclass(slots=True)
class EnginePolicies:
    """What is set on each topic. Without them nothing is."""

    limit_of: Callable[[Topic, str | None], RateLimit | None] = lambda _, __: None
    """The limit that is set on a topic (None) or on one of its subscriptions (its name)."""
    quotas_of: Callable[[Topic], Quotas] = lambda _: NO_QUOTAS
    """The backlog quotas that are set on a topic."""
    publish_limit_of: Callable[[Topic], RateLimit | None] = lambda _: None
    """The publish limit that is set on a topic."""
    deduplicates: Callable[[Topic], bool] = lambda _: False
    """Whether message deduplication is set for a topic."""
    delayed_delivery_of: Callable[[Topic], DelayedDelivery] = lambda _: DEFAULT_DELAYED_DELIVERY
    """The policy of delayed delivery of a topic."""
    unacked_limits_of: Callable[[Topic], UnackedLimits | None] = lambda _: None
    """The limits on unacknowledged messages in force on a topic; None for the engine's."""
    send_rules_of: Callable[[Topic], SendRules | None] = lambda _: None
    """The rules that are set for the SENDs of a topic."""
    due_time_of: DueTimeOf = never_delayed
    """When a stored entry may be delivered."""
