"""Tables of a folder with some hours of backlogs and quotas, behind a real HTTP server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from headgate.base.web_hosts import HostNames
from headgate.page.files import history_files
from headgate.pipeline.serve.app import history_app
from headgate.pipeline.serve.history import History
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from tests.page.scene import handler
from tests.unit.admin.client import Answer, ask_async
from tests.unit.pipeline.output.test_views import segment
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import (
    NS,
    at,
    backtest_row,
    played,
    quota_row,
    topic_key,
    write,
)

HOURS: Final = 4
TOPICS: Final = ("orders", "clicks-of-a-shop-with-a-name-that-is-longer-than-others")
PHASE_MINUTES: Final = 50
GROWTH: Final = (0, 900, -600, 300)
"""Messages a minute in each phase; a backlog that shrinks is the consumer's, too."""
CAUSES: Final = ("NONE", "THROTTLED_TOPIC", "CONSUMER", "NO_CONSUMER")
GAP: Final = range(20, 26)
"""Minutes without telemetry."""


class HistoryScene:
    """The page over the tables of ``folder``, and its URL."""

    def __init__(self, folder: Path) -> None:
        _fill(folder)
        self._app = history_app(
            History(str(folder), lambda: T0 + HOURS * HOUR_NS),
            history_files(),
            HostNames(["localhost"]),
        )
        self.is_reachable = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def ask(self, method: str, path: str, body: bytes = b"", headers: Sequence[Any] = ()) -> Answer:
        """One request."""
        more = {"headers": list(headers)}
        return asyncio.run(ask_async(self._app, method, path, body, more))

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


def _fill(folder: Path) -> None:
    played(folder)
    for shift, topic in enumerate(TOPICS):
        write(folder, "attribution", _minutes(NS + topic, 30 * shift))
    write(folder, "episodes", _segments())
    usage = []
    for minute in range(HOURS * 60):
        instant = datetime.fromtimestamp(T0 / 1_000_000_000, UTC) + timedelta(minutes=minute)
        use = min(1.0, minute % 90 / 80)
        usage.append(
            quota_row(
                minute,
                size_use=use,
                time_use=use / 2,
                held_seconds=30.0 * (use == 1),
                forecast_at=instant,
            )
        )
    write(folder, "quota_usage", usage)
    write(folder, "policy_backtest", [backtest_row(each) for each in range(6)], ("run_id",))


def _minutes(topic: str, shift: int) -> list[dict[str, Any]]:
    """The rows of ``attribution`` of one subscription."""
    found = []
    backlog = 0
    for minute in range(HOURS * 60):
        phase = (minute + shift) // PHASE_MINUTES % len(CAUSES)
        before, backlog = backlog, max(0, backlog + GROWTH[phase])
        from_ns = T0 + minute * MINUTE_NS
        cause = CAUSES[phase]
        if minute in GAP:
            continue
        found.append(
            {
                **at(from_ns),
                **topic_key(topic),
                "subscription": "billing",
                "from_ns": from_ns,
                "to_ns": from_ns + MINUTE_NS,
                "backlog_messages": backlog,
                "growth_messages": backlog - before,
                "completeness": 1.0,
                "confidence": 0.9,
                "verdict": cause,
                "sentence": f"{cause}: in words that are long enough to need a second line on a "
                "phone, as those of a limit do that say by how much to raise it.",
                **{f"share_{each.lower()}": float(each == cause) for each in BLAMES},
            }
        )
    return found


def _segments() -> list[dict[str, Any]]:
    edge = T0 + HOUR_NS
    over = {"subscription": "billing"}
    return [
        segment(edge - 10 * MINUTE_NS, edge, NS + TOPICS[0], continues_after=True, **over),
        segment(edge, edge + 40 * MINUTE_NS, NS + TOPICS[0], continues_before=True,
                peak_backlog_messages=45_000, evicted=1_200, **over),
        segment(T0, T0 + 30 * MINUTE_NS, NS + TOPICS[1], **over),
    ]  # fmt: skip
