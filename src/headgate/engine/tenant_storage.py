"""The bound on what all topics of a tenant store (``headgateMaxStoragePerTenantMB``).

Backlog quotas and retention are set by the administrator of a tenant. This bound is the operator's:
one tenant cannot fill the disk, on which the messages of all others would wait.

The log counts what each tenant stores, so a SEND costs one comparison. One without room is not
stored. Its producer is closed as soon as its staged entries are answered, so nothing that has a
receipt is lost, and new producers of the tenant are refused until it is down to 95 % of the bound.
Nothing waits in memory. Consumers go on.

What is stored takes memory, too: 128 bytes for what a topic has in a segment of the log. A message
of a few hundred bytes now and then to each of very many topics has little else on the disk. So
while the process is near the limit on its memory, and this is a considerable part of it, tenants
with the most of it store no more. Where others filled the memory by something else they go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol
from weakref import WeakValueDictionary

from headgate.base.memory_room import NEAR_LIMIT
from headgate.base.names import TopicName
from headgate.base.owner_shares import level_of
from headgate.base.stored_total import RUN_BYTES, STORED_BYTES_MAX, StoredTotal
from headgate.engine.errors import ProducersRefusedError
from headgate.flow.quota.backlog_quota import RELEASE_PERCENT, size_released

SETTING_NAME = "headgateMaxStoragePerTenantMB"
"""The setting of the bound, as refusals name it."""

RUNS_MIN: Final = 500_000
"""Runs that a tenant may have in any case: 64 MB of memory."""

RUNS_SHARE: Final = 1 / 16
"""What the runs of all tenants may take of the limit on the process's memory, however
near the process is to it: half of what is left where the largest tenants get no more."""


class StoredTopic(Protocol):
    """What the log keeps of a topic, as far as its tenant is charged with it."""

    stored_total: StoredTotal


class TenantStorage:
    """What each tenant with topics stores, and which tenants store all that they may."""

    def __init__(self, bytes_max: int = STORED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._by_tenant: WeakValueDictionary[str, StoredTotal] = WeakValueDictionary()
        """The logs of topics hold them, also of topics that are not loaded."""
        self._full: dict[str, tuple[StoredTotal, int]] = {}
        """The tenants of which an entry had no room, each with the bytes of the largest one."""
        self._is_short = False
        """Whether the memory of the process was short at the last measurement."""

    def join(self, log: StoredTopic, name: TopicName) -> None:
        """Count a topic for its tenant until it is deleted. No change if it is counted already."""
        if log.stored_total.owner:
            return
        tenant = self._by_tenant.get(name.tenant)
        if tenant is None:
            tenant = StoredTotal(log.stored_total.entry_head_bytes, name.tenant)
            tenant.set_max(self._bytes_max)
            self._by_tenant[name.tenant] = tenant
        tenant.take_over(log.stored_total)
        log.stored_total = tenant

    def set_max(self, bytes_max: int) -> None:
        """Allow each tenant so many bytes from now on. What is stored beyond them stays."""
        if bytes_max == self._bytes_max:
            return
        self._bytes_max = bytes_max
        for stored in self.tenants():
            stored.set_max(bytes_max)

    def spare_memory(self, *, is_short: bool, limit_bytes: int = 0) -> None:
        """While the memory of the process is short, and runs take much of its ``limit_bytes``, have
        those with the most runs store no more. Call it at each measurement."""
        if not is_short and not self._is_short:
            return
        self._is_short = is_short
        tenants = self.tenants()
        runs = [stored.runs for stored in tenants]
        least = max(level_of(runs), RUNS_MIN)
        are_many = is_short and RUN_BYTES * sum(runs) >= RUNS_SHARE * limit_bytes
        for stored in tenants:
            stored.hold(is_held=are_many and stored.runs >= least)

    def tenants(self) -> list[StoredTotal]:
        """What each tenant with topics stores."""
        return list(self._by_tenant.values())

    def refuse(self, stored: StoredTotal, body_bytes: int) -> None:
        """Note that an entry of a tenant has no room: its producer is to be closed."""
        largest = self._full.get(stored.owner, (stored, 0))[1]
        entry_bytes = body_bytes + stored.entry_head_bytes
        self._full[stored.owner] = (stored, max(largest, entry_bytes))

    def is_full(self, stored: StoredTotal) -> bool:
        """Whether new producers of a tenant are refused: an entry had no room, and since then the
        tenant was never down to 95 % of the bound with room for that entry."""
        found = self._full.get(stored.owner)
        if found is None:
            return False
        is_released = size_released(stored.bytes, stored.bytes_max, found[1])
        if stored is found[0] and (stored.is_held or not is_released):
            return True
        del self._full[stored.owner]
        return False

    def full_tenants(self) -> Iterator[StoredTotal]:
        """Those whose new producers are refused."""
        return (stored for stored, _ in list(self._full.values()) if self.is_full(stored))

    def check_newcomer(self, stored: StoredTotal) -> None:
        """Refuse a new producer of a tenant that stores all that it may.

        Raises:
            ProducersRefusedError: it does.
        """
        if self._full and self.is_full(stored):
            raise ProducersRefusedError(f"Cannot create producer: {full_text(stored)}")


def full_text(stored: StoredTotal) -> str:
    """A clause that says how much a tenant stores, which is too much."""
    if stored.is_held:
        return (
            f"tenant {stored.owner} stores {stored.bytes:,} bytes in {stored.runs:,} places of the "
            f"log, and no more for now{NEAR_LIMIT}"
        )
    return (
        f"tenant {stored.owner} stores {stored.bytes:,} bytes of {stored.bytes_max:,}, and has to "
        f"come down to {RELEASE_PERCENT} % of it ({SETTING_NAME})"
    )
