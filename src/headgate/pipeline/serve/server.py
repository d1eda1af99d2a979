"""``headgate pipeline serve``: listens and serves the page over the tables until it is ended."""

from __future__ import annotations

import errno
import os
import socket
from typing import Final, TextIO

import uvicorn

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.web_hosts import HostNames, is_loopback
from headgate.base.web_server import WEB_SERVER
from headgate.page.app import PREFIX
from headgate.page.files import history_files
from headgate.pipeline.options import ServeOptions
from headgate.pipeline.serve.app import history_app
from headgate.pipeline.serve.history import History

CONNECTIONS_MAX: Final = 100
"""Connections and requests at once; others are answered with 503."""
KEEP_ALIVE_S: Final = 10
CLOSE_S: Final = 2
"""Time that requests in progress have to finish when the command ends."""


def run_serve(options: ServeOptions, err: TextIO) -> None:
    """Serve until the process is asked to end; prints the address on ``err``.

    Raises:
        InputError: the folder has no tables, the address is not allowed or cannot be listened on.
    """
    check_address(options)
    history = History(options.out, SystemClock.wall_ns)
    known = history.about({})
    names = HostNames((options.host, socket.gethostname()))
    app = history_app(history, history_files(), names)
    with listener(options.host, options.port) as listening:
        host, port = options.host, listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        if known["since"] is not None:
            err.write(f"{options.out} has telemetry from {known['since']} to {known['until']}.\n")
        if not is_loopback(host):
            err.write("Everybody who reaches this address can read the tables.\n")
        err.write(f"The page is at http://{shown}:{port}{PREFIX}; Ctrl-C ends it.\n")
        err.flush()
        config = uvicorn.Config(
            app,
            http="h11",  # it bounds heads and trailers; httptools keeps one of any length
            log_level="warning",
            **WEB_SERVER,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=CLOSE_S,
        )
        uvicorn.Server(config).run([listening])


def check_address(options: ServeOptions) -> None:
    """Check that only this machine can reach the address, or that the operator means it.

    Raises:
        InputError: others can, and ``--insecure-listen`` is not given.
    """
    if not is_loopback(options.host) and not options.is_insecure_allowed:
        raise InputError(
            f"--address {options.host!r} is not allowed: the page asks for no credentials, so "
            "everybody who reaches this address could read the tables. Listen on 127.0.0.1, or say "
            "that this is meant with --insecure-listen"
        )


def listener(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        InputError: the port is taken, or the address is not of this machine.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
        except OSError:
            listening.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} is in use (--port); 0 takes a free one") from error
        reason = error.strerror or os.strerror(error.errno or 0)
        raise InputError(f"{host}:{port} cannot be listened on: {reason} (--address)") from error
    return listening
