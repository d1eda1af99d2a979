"""What a broker repeats of a request is in no error of a check. The rest is in tests/spark."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.access_options import AccessOptions
from headgate.pipeline.options import TELEMETRY_TOPIC, SourceOptions
from headgate.pipeline.preflight import check_brokers


class Repeating(BaseHTTPRequestHandler):
    """Sends requests on to a host that is none, with the token in its name."""

    def do_GET(self) -> None:
        self.send_response(307)
        token = self.headers["Authorization"].removeprefix("Bearer ")
        self.send_header("Location", f"http://a:{token}/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_token_that_a_redirect_repeats_is_in_no_error() -> None:
    access = AccessOptions("token", "token:S3cret")
    with ThreadingHTTPServer(("127.0.0.1", 0), Repeating) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(
            InputError, match=r"cannot be reached: Failed to parse.*\*\*\*"
        ) as caught:
            check_brokers(
                SourceOptions(
                    "t", ("pulsar://127.0.0.1:1",), (url,), TELEMETRY_TOPIC, access=access
                )
            )
        server.shutdown()
        thread.join(10)
    assert "S3cret" not in str(caught.value)
