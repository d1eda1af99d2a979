"""The transport of TLS counts and pauses the one below it, too."""

from __future__ import annotations

from typing import Any
from unittest.mock import sentinel

from headgate.app.tls.transport import UNREAD_BYTES_MAX, UNSENT_BYTES_MAX, TlsTransport


class Layer:
    """One of the transports, or the reads: notes what is called."""

    def __init__(self, name: str, calls: list[str], unsent_bytes: int) -> None:
        self._name = name
        self._calls = calls
        self._unsent_bytes = unsent_bytes

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def get_protocol(self) -> Any:
        return sentinel.protocol

    def __getattr__(self, name: str) -> Any:
        def call(*values: object, **more: object) -> object:
            self._calls.append(f"{self._name}.{name}{values or ''}{more or ''}")
            return sentinel.answer

        return call


def made() -> tuple[TlsTransport, list[str]]:
    calls: list[str] = []
    inner: Any = Layer("inner", calls, 10)
    plain: Any = Layer("plain", calls, 300)
    reads: Any = Layer("reads", calls, 0)
    return TlsTransport(inner, plain, reads), calls


def test_buffers_are_as_small_as_without_tls() -> None:
    _, calls = made()
    assert calls == [
        f"inner.set_write_buffer_limits{{'high': {UNSENT_BYTES_MAX}}}",
        f"inner.set_read_buffer_limits{{'high': {UNREAD_BYTES_MAX}}}",
    ]


def test_unsent_bytes_are_those_of_both() -> None:
    transport, _ = made()
    assert transport.get_write_buffer_size() == 310


def test_pausing_stops_the_socket_and_closing_reads_it_again() -> None:
    transport, calls = made()
    calls.clear()
    transport.pause_reading()
    transport.resume_reading()
    transport.close()
    assert calls == [
        "inner.pause_reading", "reads.pause_reading",
        "reads.resume_reading", "inner.resume_reading",
        "reads.resume_reading", "inner.close",
    ]  # fmt: skip


def test_the_rest_is_that_of_tls() -> None:
    transport, calls = made()
    calls.clear()
    transport.write(b"a")
    transport.writelines([b"b"])
    transport.abort()
    assert transport.is_closing() is sentinel.answer
    assert transport.is_reading() is sentinel.answer
    assert transport.get_extra_info("peercert") is sentinel.answer
    assert transport.get_protocol() is sentinel.protocol
    transport.set_protocol(sentinel.other)
    transport.set_write_buffer_limits(7, 3)
    assert not transport.can_write_eof()
    assert calls == [
        "inner.write(b'a',)", "inner.writelines([b'b'],)", "inner.abort", "inner.is_closing",
        "inner.is_reading", "inner.get_extra_info('peercert',)",
        "inner.set_protocol(sentinel.other,)", "inner.set_write_buffer_limits(7, 3)",
    ]  # fmt: skip
