"""Answers of a real Apache Pulsar 4.0.8, by path."""

from __future__ import annotations

import json
from pathlib import Path

_GOLDEN = Path(__file__).parents[2] / "conformance" / "golden" / "admin-4.0.8.jsonl"


def recorded(path: str) -> bytes:
    """The body that a Pulsar broker answered to a GET of a path below ``/admin/v2/``."""
    for line in _GOLDEN.read_text().splitlines():
        exchange = json.loads(line)
        request, response = exchange["request"], exchange["response"]
        asked = request["method"], request["path"], response["status"]
        if asked == ("GET", f"/admin/v2/{path}", 200):
            body = response["body"]
            return b"" if body is None else json.dumps(body).encode()
    raise LookupError(path)
