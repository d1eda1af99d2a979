"""A broker on a thread of another program, for demonstrations and tests."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress

import uvloop

from headgate.app.config_file import load_settings
from headgate.app.node import Node
from headgate.app.ports import Urls
from headgate.app.run import SWITCH_INTERVAL_S
from headgate.base.errors import InputError, invariant
from headgate.base.properties import Assignment
from headgate.policy.settings import SETTINGS, Settings

FREE_PORTS = {"brokerServicePort": "0", "webServicePort": "0"}
"""The default ports of an embedded broker."""


class EmbeddedBroker:
    """A broker on a thread; a context manager that starts and stops it.

    It sets the interpreter's switch interval, as ``headgate standalone`` does: the program's other
    threads yield more often while it runs.
    """

    def __init__(self, data_path: str, settings: Mapping[str, str] | None = None) -> None:
        """``settings`` are keys and values as in ``broker.conf``; ports are free ones by default.

        Raises:
            InputError: a key is not a setting, or a value is not allowed.
        """
        self._data_path = data_path
        self._settings = _settings(settings or {})
        self._thread: threading.Thread | None = None
        self._stop: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._node: Future[Node] = Future()
        self._bug: BaseException | None = None

    def start(self) -> Urls:
        """Start it and return when clients are served.

        Raises:
            HeadgateError: it cannot start: a port or the directory cannot be used.
        """
        invariant(self._thread is None, "an embedded broker starts once")
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._thread = threading.Thread(target=self._run, name="headgate-broker", daemon=True)
        self._thread.start()
        try:
            return self._node.result().urls
        except BaseException:
            # It failed, or the caller was interrupted while it starts.
            self.stop()
            raise

    @property
    def urls(self) -> Urls:
        """Where it is reached. It must have started."""
        return self._node.result(timeout=0).urls

    def stop(self) -> None:
        """Close it cleanly and return when it has ended; a second call does nothing.

        Raises:
            InvariantError: a bug ended it before.
        """
        if self._thread is not None and self._thread.is_alive():
            loop, stop = self._stop.result()
            # A start that has just failed has closed its loop.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
            self._thread.join()
        if self._bug is not None:
            raise self._bug

    def __enter__(self) -> EmbeddedBroker:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if self._node.done():
                raise
            self._node.set_exception(error)

    async def _serve(self) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def on_bug(error: BaseException) -> None:
            self._bug = error
            stop.set()

        self._stop.set_result((loop, stop))
        node = await Node.start(self._settings, self._data_path, on_bug=on_bug)
        self._node.set_result(node)
        await stop.wait()
        if self._bug is None:
            await node.close()


def _settings(values: Mapping[str, str]) -> Settings:
    for key in values:
        if key not in SETTINGS:
            raise InputError(f"there is no setting {key!r}")
    merged = {**FREE_PORTS, **values}
    return load_settings([Assignment(key, text, key) for key, text in merged.items()]).settings
