"""A target is asked a few times, and no secret is in a message."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3

from headgate.base.errors import InputError
from headgate.pipeline.alerts.delivery import (
    ATTEMPTS_MAX,
    BACKOFF_MAX_S,
    DeliveryError,
    Reply,
    Sender,
    headers_of,
    http_transport,
    read_secret,
)
from headgate.pipeline.alerts.options import Credentials

URL = "https://hooks:8443/services/T0/key"


class Target:
    """Answers requests in turn."""

    def __init__(self, *replies: Reply | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, Any, Mapping[str, str]]] = []
        self.slept_s: list[float] = []

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        self.asked.append((url, json.loads(body), headers))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def sender(self, headers: Mapping[str, str] | None = None) -> Sender:
        return Sender(URL, self, headers or {}, self.slept_s.append)


def test_an_accepted_request_is_sent_once() -> None:
    target = Target(Reply(202))
    target.sender({"a": "b"}).send([1])
    assert target.asked == [(URL, [1], {"a": "b"})]
    assert target.slept_s == []


def test_a_target_that_is_down_is_asked_a_few_times() -> None:
    refused = urllib3.exceptions.ProtocolError("gone", ConnectionRefusedError(111, "refused"))
    target = Target(refused, Reply(503, "busy"), Reply(200))
    target.sender().send([])
    assert target.slept_s == [1.0, 2.0]
    target = Target(*[Reply(503, "busy\nnow")] * ATTEMPTS_MAX)
    with pytest.raises(DeliveryError) as found:
        target.sender().send([])
    assert str(found.value) == "https://hooks:8443 answered 503: busy now (tried 3 times)"
    assert found.value.is_down
    assert len(target.asked) == ATTEMPTS_MAX


def test_a_wait_that_the_target_asks_for_is_bounded() -> None:
    replies = [Reply(429, "", "4"), Reply(429, "", "99999999999"), Reply(200)]
    target = Target(*replies)
    target.sender().send([])
    assert target.slept_s == [4.0, BACKOFF_MAX_S]
    target = Target(Reply(429, "", "Wed, 21 Oct 2015 07:28:00 GMT"), Reply(200))
    target.sender().send([])
    assert target.slept_s == [1.0]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(400, "bad labels"), "answered 400: bad labels"),
        (Reply(302), "answered 302: redirects are not followed"),
        (Reply(404), "answered 404"),
    ],
)
def test_a_final_answer_is_not_asked_again(reply: Reply, said: str) -> None:
    target = Target(reply)
    with pytest.raises(DeliveryError) as found:
        target.sender().send([])
    assert str(found.value) == f"https://hooks:8443 {said}"
    assert not found.value.is_down


def test_what_a_target_repeats_of_a_secret_is_hidden() -> None:
    headers = headers_of(Credentials(token="s3cret"))
    assert headers["Authorization"] == "Bearer s3cret"
    target = Target(Reply(401, "token s3cret is not for /services/T0/key " + "x" * 999))
    with pytest.raises(DeliveryError) as found:
        target.sender(headers).send([])
    text = str(found.value)
    assert text.startswith("https://hooks:8443 answered 401: token *** is not for *** xxx")
    assert len(text) < 300
    failed = urllib3.exceptions.HTTPError(f"no route to {URL}")
    with pytest.raises(DeliveryError) as found:
        Target(*[failed] * ATTEMPTS_MAX).sender(headers).send([])
    assert "key" not in str(found.value)


def test_a_password_that_a_target_repeats_is_hidden() -> None:
    headers = headers_of(Credentials(user="ann", password="hunter2:x"))
    target = Target(Reply(401, "no user ann with hunter2:x, sent as " + headers["Authorization"]))
    with pytest.raises(DeliveryError) as found:
        target.sender(headers).send([])
    assert str(found.value).endswith("answered 401: no user ann with ***, sent as Basic ***")


def test_a_part_of_the_url_that_a_target_repeats_is_hidden() -> None:
    url = "https://hooks:8443/services/T0/s3cretkey?v=1&sig=s3cretsig"
    said = r"Cannot POST /services/T0/s3cretkey, \/T0\/s3cretkey, sig s3cretsig, v 1"
    with pytest.raises(DeliveryError) as found:
        Sender(url, lambda *_: Reply(404, said, None), {}).send([])
    text = r"Cannot POST /***/T0/***, \/T0\/***, sig ***, v 1"
    assert str(found.value) == f"https://hooks:8443 answered 404: {text}"


def test_a_long_secret_that_a_target_repeats_behind_spaces_is_hidden() -> None:
    headers = headers_of(Credentials(token="s3cret" * 40))

    class Repeating(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b" " * 700 + self.headers["Authorization"].encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Repeating) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/x"
        with pytest.raises(DeliveryError) as found:
            Sender(url, http_transport(None), headers).send([])
        server.shutdown()
        thread.join(10)
    assert str(found.value).endswith("answered 400: Bearer ***")


def test_secrets_come_from_files_or_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("abc\n")
    assert headers_of(Credentials(token_path=str(path)))["Authorization"] == "Bearer abc"
    basic = headers_of(Credentials(user="u", password_path=str(path)))["Authorization"]
    assert basic == f"Basic {base64.b64encode(b'u:abc').decode()}"
    assert "Authorization" not in headers_of(Credentials())


@pytest.mark.parametrize("content", [b"", b"a\nb", b"a b", b"\xff", b"x" * 20_000])
def test_a_secret_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"--token-file .*token: "):
        headers_of(Credentials(token_path=str(path)))
    with pytest.raises(InputError, match="HEADGATE_ALERTS_TOKEN: one line of visible"):
        headers_of(Credentials(token="a\r\nb"))
    with pytest.raises(InputError, match="none cannot be read: No such file"):
        read_secret(str(tmp_path / "none"), "--token-file")


def test_authorities_must_be_certificates(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("nothing")
    with pytest.raises(InputError, match=r"--tls-trust-cert-path .*ca.pem: a PEM file with"):
        http_transport(str(path))
    assert callable(http_transport(None))
