"""Takes the positions over from checkpoints of earlier releases.

Those releases had a checkpoint for each list of broker URLs, named by a hash of the list, with the
offset of each broker in the list's order. The positions that a folder's first run finds there are
stored in a file beside the checkpoint, because a later run may have another list.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from pathlib import Path
from typing import Any, Final

from headgate.base.errors import InputError
from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import checkpoint_id
from headgate.pipeline.streaming.bronze_state import BatchState, batch_state, has_batches
from headgate.pipeline.streaming.cluster_offsets import ClusterOffsets, of_topic
from headgate.pipeline.streaming.offset_log import newest_batch
from pyspark_pulsar.offsets import parse_position

LISTS_MAX: Final = 200_000
"""Most lists of URLs that are tried for one checkpoint, a second of work: all orders of eight."""

_NAME: Final = re.compile(r"[0-9a-f]{16}")
_STARTS_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A checkpoint of an earlier release that filled these tables from the topic."""

    path: Path
    changed_ns: int
    """When its newest batch was planned."""
    positions: tuple[dict[str, str], ...]
    """Positions up to which the tables have the messages, by broker in the order of the list."""


def starting_positions(
    source: SourceOptions, checkpoint: str, clusters: Sequence[str], *, is_known: bool
) -> ClusterOffsets:
    """The positions with which the clusters of a topic begin that the checkpoint does not have.

    ``clusters``: the identity of each broker of ``source``. The first call for a topic looks for
    checkpoints of earlier releases, and stores what it finds; later calls return that. If the topic
    ``is_known`` to the checkpoint, nothing is looked for.

    Raises:
        InputError: an earlier release filled the tables from another list of brokers, or a file
            has another format.
        OSError: a file cannot be read or written.
    """
    path = Path(f"{checkpoint}.starts.json")
    topics = _stored(path)
    if source.topic not in topics:
        if is_known:
            return {}
        topics[source.topic] = _imported(source, Path(checkpoint), clusters)
        temporary = path.with_suffix(".new")
        path.parent.mkdir(parents=True, exist_ok=True)
        # A new file: others may write to the folder, and have put a link there.
        temporary.unlink(missing_ok=True)
        with temporary.open("x", encoding="utf-8") as file:
            json.dump({"v": _STARTS_VERSION, "topics": topics}, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    return topics[source.topic]


def _stored(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["v"] != _STARTS_VERSION:
            raise ValueError
        return dict(document["topics"])
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged, or of a later release. It holds the positions that were taken "
            "over from an earlier release: put it back, or remove it if no earlier release wrote "
            "to these tables"
        ) from error


def _imported(
    source: SourceOptions, checkpoint: Path, clusters: Sequence[str]
) -> dict[str, dict[str, str]]:
    earlier = sorted(_earlier(source, checkpoint.parent), key=lambda one: one.changed_ns)
    found: dict[str, dict[str, str]] = {}
    for one in earlier:
        order = _order_of(one, source)
        if order is None and one is earlier[-1]:
            raise InputError(
                f"an earlier release filled {source.out} from {len(one.positions)} brokers, whose "
                "list of URLs is not the one that is given now. Give the brokers of its last run "
                "once, with the same --broker-url; after that, brokers may be added, removed and "
                f"renamed. If these URLs are gone, remove {one.path}: then the job reads all "
                "telemetry that the brokers hold once more, which changes no figure of the tables"
            )
        for broker, positions in zip(order or (), one.positions, strict=False):
            known = found.setdefault(clusters[broker], {})
            for partition, text in positions.items():
                known[partition] = _later(partition, text, known.get(partition))
    return found


def _later(partition: str, text: str, other: str | None) -> str:
    texts = [text] if other is None else [text, other]
    return max(texts, key=lambda each: parse_position(each, partition).order_key)


def _earlier(source: SourceOptions, folder: Path) -> list[_Earlier]:
    """The checkpoints of earlier releases that filled these tables from the topic."""
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not (_NAME.fullmatch(path.name) and Path(path, "metadata").exists()):
            continue
        batch, app_id = newest_batch(str(path)), checkpoint_id(str(path))
        # A work folder may hold those of other folders of tables, too.
        if batch is None or not has_batches(source.out, app_id):
            continue
        is_written = batch.is_committed or (
            batch_state(source.out, app_id, batch.number) is BatchState.WRITTEN
        )
        offsets = batch.ends if is_written else batch.starts
        positions = tuple(_positions(offset, source.topic) for offset in offsets)
        if any(positions):
            changed_ns = Path(path, "offsets", str(batch.number)).stat().st_mtime_ns
            found.append(_Earlier(path, changed_ns, positions))
    return found


def _positions(offset: Mapping[str, Any], topic: str) -> dict[str, str]:
    """The positions of a broker's offset in the partitions of ``topic``."""
    return of_topic(offset.get("t", {}), topic)


def _order_of(one: _Earlier, source: SourceOptions) -> tuple[int, ...] | None:
    """Which brokers of ``source`` the checkpoint's list had, in its order; None if others."""
    root = None if source.work is None else resolved_root(source.out)
    brokers = range(len(source.broker_urls))
    for order in islice(permutations(brokers, len(one.positions)), LISTS_MAX):
        urls = [source.broker_urls[broker] for broker in order]
        if earlier_name(urls, source.topic, root) == one.path.name:
            return order
    return None


def earlier_name(broker_urls: Sequence[str], topic: str, root: str | None) -> str:
    """The name of an earlier release's checkpoint; ``root`` only with ``--work``."""
    query: list[object] = [list(broker_urls), topic]
    if root is not None:
        query.append(root)
    return hashlib.sha256(json.dumps(query).encode()).hexdigest()[:16]
