"""A process of its own that holds a spike of messages and lets go of them: ``BODY_BYTES`` says how
large each is. Prints, in JSON, what the memory signal says before, at the top and after.

The messages wait as the broker keeps them, taken out of received bytes, in queues of many
producers. One producer goes on waiting, and beside each thousandth message something is made that
stays, as indexes and sessions do.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque

from headgate.app.system_memory import ProcSelfMemory, throttling_memory
from headgate.base.clock import SystemClock
from headgate.base.units import GIB, MIB
from headgate.engine.parked_send import ParkedSend
from headgate.policy.settings import Settings

SPIKE_BYTES = GIB
PRODUCERS = 100
STAYS_EVERY = 1_000
LIMIT_MB = 1_100
LIMIT_S = 10.0


def receive(body_bytes: int) -> tuple[list[deque[ParkedSend]], list[bytearray]]:
    """Queues with the spike, and what was made beside it."""
    queues: list[deque[ParkedSend]] = [deque() for _ in range(PRODUCERS)]
    stays = []
    received = memoryview(b"x" * body_bytes)
    for number in range(SPIKE_BYTES // body_bytes):
        send = ParkedSend(number, number, 1, bytes(received), time.monotonic_ns())
        queues[number % PRODUCERS].append(send)
        if number % STAYS_EVERY == 0:
            stays.append(bytearray(body_bytes))
    return queues, stays


def spike(body_bytes: int) -> dict[str, float]:
    """The signal's shares of the limit, and the seconds until it was below the low watermark."""
    settings = Settings(headgateMemoryLimitMB=LIMIT_MB)
    system = ProcSelfMemory()
    memory = throttling_memory(settings, system, lambda: 0, SystemClock())
    low = settings.adaptivePublisherThrottlingMemoryLowWatermarkPct * memory.limit_bytes
    before_bytes = memory.used_bytes()
    queues, stays = receive(body_bytes)
    top_bytes = memory.used_bytes()
    for queue in queues[1:]:
        queue.clear()
    ended_s = time.monotonic()
    while (after_bytes := memory.used_bytes()) > low and time.monotonic() < ended_s + LIMIT_S:
        time.sleep(0.02)
    fell_s = time.monotonic() - ended_s
    resident_bytes = system.resident_bytes()
    system.close()
    return {
        "before": before_bytes / memory.limit_bytes,
        "top": top_bytes / memory.limit_bytes,
        "after": after_bytes / memory.limit_bytes,
        "resident_mb": resident_bytes / MIB,
        "fell_s": fell_s,
        "stays": len(stays),
    }


if __name__ == "__main__":
    json.dump(spike(int(sys.argv[1])), sys.stdout)
