"""What the broker writes to a connection of the web port that has asked nothing."""

from __future__ import annotations

import json

from headgate.app.http_refusal import refusal_answer
from headgate.base.web_hosts import OWN_HEADERS


def test_it_is_a_whole_answer_with_a_reason() -> None:
    head, _, body = refusal_answer(503, "Too many connections").partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 503 Service Unavailable"
    assert json.loads(body) == {"reason": "Too many connections"}
    assert b"content-length: %d" % len(body) in lines
    assert lines[-1] == b"connection: close"
    assert {name + b": " + value for name, value in OWN_HEADERS} <= set(lines)
