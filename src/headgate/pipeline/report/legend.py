"""The legend of the charts: the colour and the name of each cause.

The colours are Okabe and Ito's, which people with any colour vision can tell apart, on white and on
black. A publish limit has the colour of the dispatch limit on the same level.
"""

from __future__ import annotations

from typing import Final

GREY: Final = "#9a9a9a"
ORANGE: Final = "#e69f00"
SKY: Final = "#56b4e9"
GREEN: Final = "#009e73"
BLUE: Final = "#0072b2"
VERMILION: Final = "#d55e00"
PURPLE: Final = "#cc79a7"
YELLOW: Final = "#d6c61e"
"""Darker than in the palette, so that it is visible on white."""

SLATE: Final = "#6b7f94"
"""Colour of series that are not causes: amounts, use, completeness."""

BLAME_COLORS: Final = {
    "NONE": GREY,
    "CONSUMER": BLUE,
    "NO_CONSUMER": SKY,
    "THROTTLED_SUBSCRIPTION": ORANGE,
    "THROTTLED_TOPIC": VERMILION,
    "THROTTLED_BROKER": PURPLE,
    "BROKER": GREEN,
}
"""Colour by verdict."""

BLAME_NAMES: Final = {
    "NONE": "no cause",
    "CONSUMER": "consumer",
    "NO_CONSUMER": "no consumer",
    "THROTTLED_SUBSCRIPTION": "subscription limit",
    "THROTTLED_TOPIC": "topic limit",
    "THROTTLED_BROKER": "broker limit",
    "BROKER": "broker",
}
"""Names in legends."""

PARK_COLORS: Final = {
    "topic_rate": VERMILION,
    "broker_rate": PURPLE,
    "adaptive": YELLOW,
    "backlog_quota": ORANGE,
    "pending_limit": BLUE,
    "memory": GREEN,
    "disk_full": SKY,
}
"""Colour by park cause."""

QUOTA_COLOR: Final = ORANGE
"""Colour of the line at which a backlog quota is full, and of its forecast."""

LIMIT_COLORS: Final = {
    "subscription": ORANGE,
    "topic": VERMILION,
    "broker": PURPLE,
    "publish_topic": VERMILION,
    "publish_broker": PURPLE,
}
"""Colour by level of the limiter."""

PARK_NAMES: Final = {
    "topic_rate": "topic's publish limit",
    "broker_rate": "broker's publish limit",
    "adaptive": "adaptive throttling",
    "backlog_quota": "backlog quota",
    "pending_limit": "unanswered sends",
    "memory": "broker's memory",
    "disk_full": "full disk",
}
"""Names in legends."""
