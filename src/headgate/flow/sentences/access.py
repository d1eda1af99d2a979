"""One sentence about producers that may not join a topic: exclusive access, and termination."""

from __future__ import annotations


def access_sentence(*, waiting: int, holder: str, terminated: int = 0, partitions: int = 1) -> str:
    """What keeps producers out of a topic, without line break and full stop; empty if nothing does.

    ``waiting`` producers wait for exclusive access, which ``holder`` has, or the producers that
    share the topic if that is empty. Of its ``partitions``, ``terminated`` take no more messages.
    """
    parts = []
    if terminated:
        which = "" if partitions == 1 else f" on {terminated:,} of {partitions:,} partitions"
        parts.append(f"the topic is terminated{which}: it takes no more messages")
    if waiting:
        who = "1 producer waits" if waiting == 1 else f"{waiting:,} producers wait"
        if holder:
            why = f"which {holder} has"
        else:
            why = "until the producers that share the topic are gone"
        parts.append(f"{who} for exclusive access, {why}")
    return "; ".join(parts)
