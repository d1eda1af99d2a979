"""What open pages cost the broker: 100 browsers that show the largest of 10,000 backlogs.

    ./dev bench open_pages [--pages 100] [--subscriptions 10000]

Each page asks as the page in a browser does: with what it knows of the last answer, when that is
five seconds old, over a connection that stays. Times without and with pages alternate, and what the
broker needs without them is subtracted.
"""

from __future__ import annotations

import argparse
import http.client
import re
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from bench.audience import Feeder, hold
from bench.client import entry
from bench.report import Table
from bench.servers import Server, headgate, scratch
from headgate.base.units import NS_PER_S

INTERVAL_S: Final = 5
MEASURED_S: Final = 30
"""Of each time without and with pages."""
ROUNDS: Final = 4
SHARE_MAX: Final = 0.02
"""Of one core."""
PATH: Final = "/admin/v2/headgate/explain?count=100&timeline=true"
"""What the view Now asks."""


class OpenPage:
    """One page: a connection that stays, and the tag of the last answer."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "Cache-Control": f"max-age={INTERVAL_S}",
        }
        self.bytes = 0
        self.due_s = 0.0
        """When to ask next, on the monotonic clock."""

    def ask(self) -> int:
        """One request; returns its status."""
        self._connection.request("GET", PATH, headers=self._headers)
        answer = self._connection.getresponse()
        self.bytes += len(answer.read())
        if tag := answer.headers["ETag"]:
            self._headers["If-None-Match"] = tag
        age_s = int(answer.headers["Age"] or 0)
        self.due_s = time.monotonic() + max(1, INTERVAL_S - age_s)
        return answer.status

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def cpu_share(server: Server, pages: Sequence[OpenPage], statuses: Counter[int]) -> float:
    """The part of a core that the server uses while the pages ask. They are opened evenly."""
    began_s, began_ns = time.monotonic(), server.cpu_ns()
    end_s = began_s + MEASURED_S
    for place, page in enumerate(pages):
        page.due_s = began_s + INTERVAL_S * place / len(pages)
    while pages:
        page = min(pages, key=lambda each: each.due_s)
        if page.due_s >= end_s:
            break
        time.sleep(max(0.0, page.due_s - time.monotonic()))
        statuses[page.ask()] += 1
    time.sleep(max(0.0, end_s - time.monotonic()))
    return (server.cpu_ns() - began_ns) / NS_PER_S / (time.monotonic() - began_s)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--subscriptions", type=int, default=10_000)
    options = parser.parse_args()
    with scratch() as folder:
        server = headgate(folder)
        try:
            table = measure(server, options.pages, options.subscriptions)
        finally:
            server.close()
    table.print()


def measure(server: Server, pages_count: int, subscriptions: int) -> Table:
    """The table for one server."""
    topics = [f"persistent://public/default/t{number}" for number in range(subscriptions)]
    hold(server.port, topics)
    feeder = Feeder(server.port, topics, entry())
    feeder.publish_everywhere(1)
    port = int(re.findall(r"http://\S+?:(\d+)", server.ready_line)[0])
    statuses: Counter[int] = Counter()
    idle = busy = 0.0
    received_bytes = 0
    for _ in range(ROUNDS):
        idle += cpu_share(server, [], statuses) / ROUNDS
        pages = [OpenPage(port) for _ in range(pages_count)]
        busy += cpu_share(server, pages, statuses) / ROUNDS
        for page in pages:
            received_bytes += page.bytes
            page.close()
    table = Table(f"{pages_count} open pages, {subscriptions:,} subscriptions with a backlog")
    table.add("the broker without a page", f"{100 * idle:.2f} % of a core")
    table.check("what the pages add", 100 * (busy - idle), "% of a core", 100 * SHARE_MAX)
    table.add("answers by status", ", ".join(f"{n} x {s}" for s, n in sorted(statuses.items())))
    asked = sum(statuses.values())
    table.add("bytes of an answer", f"{received_bytes // max(asked, 1):,}")
    feeder.close()
    return table


if __name__ == "__main__":
    main()
