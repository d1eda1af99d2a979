"""The cache of recent and read-ahead entries, bounded in bytes.

One cache serves the whole broker; each topic looks its own entries up in its own dictionary, so a
delivery costs one lookup. Eviction is first in, first out: a tail reader never misses, and an entry
of a backlog read that is evicted before it is sent is read again. The newest entry always stays,
however large it is: an entry that does not fit into the cache would never be sent.
"""

from __future__ import annotations

from collections import deque

ENTRY_OVERHEAD_BYTES = 160
"""Memory of a cached entry beside its body: bytes object, dictionary slot, queue tuple."""

TopicCache = dict[int, bytes]


class EntryCache:
    """Entries of all topics: at most ``size_bytes_max`` with their overhead, or a single one."""

    __slots__ = ("_queue", "size_bytes", "size_bytes_max")

    def __init__(self, size_bytes_max: int) -> None:
        self.size_bytes_max = size_bytes_max
        self.size_bytes = 0
        self._queue: deque[tuple[TopicCache, int, int]] = deque()

    def put(self, entries: TopicCache, ordinal: int, body: bytes) -> None:
        """Cache an entry of the topic whose dictionary is ``entries``."""
        if ordinal in entries:
            return
        entries[ordinal] = body
        size = len(body) + ENTRY_OVERHEAD_BYTES
        self._queue.append((entries, ordinal, size))
        self.size_bytes += size
        # Never the one that was just put in: an entry larger than the whole cache would otherwise
        # be read again and again, and never be there when its turn comes.
        while self.size_bytes > self.size_bytes_max and len(self._queue) > 1:
            evicted_from, evicted, evicted_bytes = self._queue.popleft()
            evicted_from.pop(evicted, None)
            self.size_bytes -= evicted_bytes
