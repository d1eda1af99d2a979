"""The views of the page by their address, with the heading of each."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from tests.page.scene import HOSTILE


def topic_view(topic: str) -> str:
    """The address of the view of a topic."""
    return "topic/" + quote(f"persistent://public/default/{topic}", safe="")


def subscription_view(topic: str, name: str) -> str:
    """The address of the view of a subscription."""
    full = quote(f"persistent://public/default/{topic}", safe="")
    return f"subscription/{full}/{quote(name, safe='')}"


def browse_view(topic: str) -> str:
    """The address of a topic in the view Browse."""
    return "browse/public/default/" + quote(f"persistent://public/default/{topic}", safe="")


VIEWS: Final = {
    "now": "Backlogs now",
    "limits": "Limits in force",
    "storage": "Quotas and storage",
    "adaptive": "Adaptive throttling",
    "broker": "Broker 127.0.0.1:8080",
    "browse": "Tenants",
    "browse/public": "Namespaces of public",
    "browse/public/default": "public/default",
    browse_view("topic-limit"): "public/default/topic-limit",
    topic_view("topic-limit"): "public/default/topic-limit",
    topic_view("publish-limit"): "public/default/publish-limit",
    subscription_view("slow-consumer", "orders"): "orders",
}

HOSTILE_VIEWS: Final = {
    "now": 2,
    "storage": 1,
    "browse/public/default": 1,
    browse_view(HOSTILE): 1,
    topic_view(HOSTILE): 2,
    subscription_view(HOSTILE, HOSTILE): 2,
}
"""Views that show the hostile name, and at how many places at least."""


def file_name(view: str) -> str:
    """A name for a file about a view."""
    return view.replace(quote("persistent://public/default/", safe=""), "").replace("/", "-")
