"""Positions from checkpoints of earlier releases, which were named by the list of URLs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.streaming.cluster_offsets import ClusterOffsets
from headgate.pipeline.streaming.earlier_checkpoints import earlier_name, starting_positions
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_SAMPLES
from tests.unit.pipeline.streaming.test_bronze_state import write
from tests.unit.pipeline.streaming.test_offset_log import commit, plan

T = SourceOptions("t").topic
A, B, C = "pulsar://a:1", "pulsar://b:1", "pulsar://c:1"
CLUSTERS = {A: "headgate:a", B: "headgate:b", C: "headgate:c"}


def source(out: Path, *urls: str, work: Path | None = None) -> SourceOptions:
    web_urls = tuple(url.replace("pulsar", "http") for url in urls)
    return SourceOptions(str(out), urls, web_urls, work=None if work is None else str(work))


def starts(asked: SourceOptions, *, is_known: bool = False) -> ClusterOffsets:
    clusters = [CLUSTERS[url] for url in asked.broker_urls]
    return starting_positions(asked, checkpoint_path(asked), clusters, is_known=is_known)


class Earlier:
    """The checkpoint that an earlier release kept for a list of URLs."""

    def __init__(self, asked: SourceOptions, topic: str = T) -> None:
        self.out, self.topic = Path(asked.out), topic
        root = None if asked.work is None else resolved_root(asked.out)
        name = earlier_name(asked.broker_urls, topic, root)
        self.path = Path(asked.work or asked.out, "_checkpoints", name)
        self.path.mkdir(parents=True)
        self.id = f"id-{name}"
        (self.path / "metadata").write_text(json.dumps({"id": self.id}))

    def batch(self, number: int, *entries: int, done: bool = True, age_s: int = 0) -> Earlier:
        """A batch that ends behind these entries, one for each broker."""
        offsets = [json.dumps({"v": 1, "t": {self.topic: f"3:{each}:-1:-1"}}) for each in entries]
        plan(self.path, number, *offsets)
        time_s = 1_700_000_000 - age_s
        os.utime(self.path / "offsets" / str(number), (time_s, time_s))
        if done:
            commit(self.path, number)
            write(self.out, BRONZE_SAMPLES, number, self.id)
        return self


def at(entry: int) -> dict[str, str]:
    return {T: f"3:{entry}:-1:-1"}


def test_a_new_folder_begins_with_nothing(tmp_path: Path) -> None:
    assert starts(source(tmp_path, A, B)) == {}
    stored = json.loads((tmp_path / "_checkpoints" / "telemetry.starts.json").read_text())
    assert stored == {"v": 1, "topics": {T: {}}}


def test_a_link_in_place_of_the_new_file_leads_to_no_other_one(tmp_path: Path) -> None:
    other, folder = tmp_path / "keys", tmp_path / "tables" / "_checkpoints"
    other.write_text("mine")
    folder.mkdir(parents=True)
    (folder / "telemetry.starts.new").symlink_to(other)
    assert starts(source(tmp_path / "tables", A)) == {}
    assert other.read_text() == "mine"


def test_positions_are_taken_over_by_cluster(tmp_path: Path) -> None:
    Earlier(source(tmp_path, A, B)).batch(6, 1, 2).batch(7, 5, 9)
    assert starts(source(tmp_path, A, B)) == {"headgate:a": at(5), "headgate:b": at(9)}
    # They are stored: the next run may have another list.
    assert starts(source(tmp_path, C, B)) == {"headgate:a": at(5), "headgate:b": at(9)}


@pytest.mark.parametrize("urls", [(B, A), (A, C, B), (C, A, B)])
def test_brokers_may_be_added_and_reordered_with_the_upgrade(
    tmp_path: Path, urls: tuple[str, ...]
) -> None:
    Earlier(source(tmp_path, A, B)).batch(7, 5, 9)
    assert starts(source(tmp_path, *urls)) == {"headgate:a": at(5), "headgate:b": at(9)}


def test_another_list_is_refused_and_nothing_stored(tmp_path: Path) -> None:
    earlier = Earlier(source(tmp_path, A, B)).batch(7, 5, 9)
    with pytest.raises(InputError, match=r"from 2 brokers, .* with the same --broker-url") as found:
        starts(source(tmp_path, A, C))
    assert f"remove {earlier.path}: " in str(found.value)
    assert starts(source(tmp_path, A, B)) == {"headgate:a": at(5), "headgate:b": at(9)}


def test_of_several_lists_the_farthest_position_counts(tmp_path: Path) -> None:
    Earlier(source(tmp_path, A)).batch(3, 7, age_s=100)
    Earlier(source(tmp_path, C)).batch(3, 1, age_s=50)  # of a broker that is gone
    Earlier(source(tmp_path, A, B)).batch(0, 4, 2)
    assert starts(source(tmp_path, A, B)) == {"headgate:a": at(7), "headgate:b": at(2)}


def test_a_batch_counts_if_it_is_in_the_tables(tmp_path: Path) -> None:
    asked = source(tmp_path, A)
    earlier = Earlier(asked).batch(1, 5).batch(2, 9, done=False)
    assert starts(asked) == {"headgate:a": at(5)}
    (tmp_path / "_checkpoints" / "telemetry.starts.json").unlink()
    write(tmp_path, BRONZE_EVENTS, 2, earlier.id)  # killed between two tables
    assert starts(asked) == {"headgate:a": at(5)}
    (tmp_path / "_checkpoints" / "telemetry.starts.json").unlink()
    write(tmp_path, BRONZE_SAMPLES, 2, earlier.id)
    assert starts(asked) == {"headgate:a": at(9)}


def test_a_work_folder_has_checkpoints_of_other_tables(tmp_path: Path) -> None:
    work = tmp_path / "work"
    Earlier(source(tmp_path / "u", A, work=work)).batch(1, 5)
    Earlier(source(tmp_path / "v", A, work=work)).batch(1, 8)
    assert starts(source(tmp_path / "u", A, work=work)) == {"headgate:a": at(5)}
    assert starts(source(tmp_path / "v", A, work=work)) == {"headgate:a": at(8)}
    assert starts(source(tmp_path / "w", B, work=work)) == {}


def test_other_topics_have_checkpoints_of_their_own(tmp_path: Path) -> None:
    Earlier(source(tmp_path, A), "persistent://a/b/other").batch(1, 5)
    assert starts(source(tmp_path, B)) == {}


def test_a_topic_that_the_checkpoint_has_needs_no_earlier_one(tmp_path: Path) -> None:
    Earlier(source(tmp_path, A)).batch(1, 5)
    assert starts(source(tmp_path, B), is_known=True) == {}


@pytest.mark.parametrize("text", ["", "[]", '{"v": 2, "topics": {}}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "_checkpoints").mkdir()
    (tmp_path / "_checkpoints" / "telemetry.starts.json").write_text(text)
    with pytest.raises(InputError, match=r"telemetry\.starts\.json is damaged, or of a later"):
        starts(source(tmp_path, A))
