"""The page is served in front of another application."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from headgate.page.app import SECURITY_POLICY, PageApp
from headgate.page.files import PageFile

BODY = b"<!doctype html>"
FILES = {
    "index.html": PageFile(BODY, gzip.compress(BODY, mtime=0), "text/html", '"e1"'),
    "app/main.js": PageFile(b"1", gzip.compress(b"1", mtime=0), "text/javascript", '"e2"'),
}


async def rest(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"rest"})


def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("no file has a body to read")

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": given}
    asyncio.run(PageApp(FILES, rest)(scope, receive, send))
    start, body = sent
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], found, body["body"]


def test_a_file_has_its_type_its_etag_and_the_policy() -> None:
    for path in ("/headgate/", "/headgate/index.html"):
        status, headers, body = ask(path)
        assert (status, body) == (200, BODY)
        assert headers["content-type"] == "text/html"
        assert headers["content-security-policy"] == SECURITY_POLICY
        assert headers["content-length"] == str(len(BODY))
    assert ask("/headgate/app/main.js")[2] == b"1"


def test_what_the_browser_has_is_not_sent_again() -> None:
    status, headers, body = ask("/headgate/", if_none_match='"e1"')
    assert (status, body) == (304, b"")
    assert headers["etag"] == '"e1"'
    # A new version of the broker is seen at once.
    assert headers["cache-control"] == "no-cache"
    assert "content-length" not in headers
    assert ask("/headgate/", if_none_match='"e2"')[0] == 200


def test_it_is_compressed_for_who_reads_that() -> None:
    _, headers, body = ask("/headgate/", accept_encoding="br, gzip")
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == BODY


def test_a_head_has_no_body() -> None:
    status, headers, body = ask("/headgate/", "HEAD")
    assert (status, body, headers["content-length"]) == (200, b"", str(len(BODY)))


def test_the_root_leads_to_it_below_any_prefix() -> None:
    for path in ("/", "/headgate"):
        status, headers, _ = ask(path)
        assert (status, headers["location"]) == (307, "headgate/")


def test_a_path_leads_nowhere_else() -> None:
    for path in ("/headgate/../secret", "/headgate/app", "/headgate//etc/passwd", "/headgate/%2e"):
        status, _, body = ask(path)
        assert (status, body) == (404, b'{"reason":"The page has no such file"}')


def test_the_rest_is_of_the_other_application() -> None:
    for path, method in (("/metrics", "GET"), ("/headgate/", "POST"), ("/", "DELETE")):
        assert ask(path, method)[0] == 418
    assert ask("/headgatex")[0] == 418
