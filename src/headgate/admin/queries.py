"""Query parameters that several routes have."""

from __future__ import annotations

from typing import Final

from headgate.admin.routing import Query

APPLIED: Final = Query(
    "applied", bool, False, "Show what is in force: from the topic, its namespace or the broker"
)

FORCE_TOPIC: Final = Query(
    "force", bool, False, "Also if it has producers or consumers, which are disconnected"
)

FORCE_CONTENTS: Final = Query(
    "force", bool, False, "Also what it contains, if the broker's settings allow that"
)
