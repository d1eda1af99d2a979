"""Addresses, the names made of them, and errors that name the setting.

No socket is opened here: those that are wait in tests/service.
"""

from __future__ import annotations

import errno
import socket

import pytest

from headgate.app.listeners import (
    OpenAddressError,
    advertised_host,
    check_address,
    listen_error,
)
from headgate.base.web_hosts import is_loopback
from headgate.policy.settings import Settings


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("broker.example", False),
        ("", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("bind", "advertised", "expected"),
    [
        ("127.0.0.1", "", "127.0.0.1"),
        ("::1", "", "[::1]"),
        ("127.0.0.1", "broker.example", "broker.example"),
        ("0.0.0.0", "broker.example", "broker.example"),
        ("0.0.0.0", "", socket.gethostname()),
        ("", "", socket.gethostname()),
    ],
)
def test_answers_to_clients(bind: str, advertised: str, expected: str) -> None:
    settings = Settings(bindAddress=bind, advertisedAddress=advertised)
    assert advertised_host(settings) == expected


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EADDRINUSE, "webServicePort=80: the port is in use on ::1"),
        (errno.EACCES, "webServicePort=80: this user may not listen"),
        (errno.EADDRNOTAVAIL, "bindAddress='::1' is not an address of this machine"),
        (errno.ENOBUFS, "webServicePort=80: cannot listen on ::1: "),
    ],
)
def test_errors_name_the_setting(number: int, message: str) -> None:
    error = OSError(number, "whatever")
    assert str(listen_error(error, "::1", 80, "webServicePort")).startswith(message)


def test_an_address_that_others_reach_needs_authentication_or_the_operators_word() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        assert check_address(host, has_authentication=False, is_insecure_allowed=False) == ""
    for host in ("0.0.0.0", "::", "10.0.0.1", "broker.example"):
        assert check_address(host, has_authentication=True, is_insecure_allowed=False) == ""
        warning = check_address(host, has_authentication=False, is_insecure_allowed=True)
        assert warning.startswith(f"bindAddress={host}: --insecure-listen is given")
        with pytest.raises(OpenAddressError, match="not allowed without authentication"):
            check_address(host, has_authentication=False, is_insecure_allowed=False)
