"""Large receive buffers have pages of their own, unless the system has none left."""

from __future__ import annotations

from mmap import mmap

import pytest

from headgate.broker.connection import receive_buffers
from headgate.broker.connection.receive_buffers import receive_buffer
from headgate.wire.limits import BUFFER_BYTES_STEADY


def test_a_usual_buffer_is_of_the_heap_and_a_large_one_has_its_own_pages() -> None:
    assert isinstance(receive_buffer(BUFFER_BYTES_STEADY), bytearray)
    large: object = receive_buffer(BUFFER_BYTES_STEADY + 1)
    assert isinstance(large, mmap)
    assert len(large) == BUFFER_BYTES_STEADY + 1
    memoryview(large)[:3] = b"abc"
    assert large[:3] == b"abc"


def test_without_mappings_a_large_buffer_is_of_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object, **__: object) -> mmap:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(receive_buffers, "mmap", none_left)
    assert receive_buffer(2 * BUFFER_BYTES_STEADY) == bytearray(2 * BUFFER_BYTES_STEADY)
