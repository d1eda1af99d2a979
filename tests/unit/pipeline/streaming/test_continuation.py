"""What a run does about a batch that an earlier run planned, with other brokers than now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.streaming.cluster_offsets import offsets_to_json
from headgate.pipeline.streaming.continuation import Continuation, prepare_continuation
from headgate.pipeline.streaming.offset_log import newest_batch
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_SAMPLES
from tests.unit.pipeline.streaming.test_bronze_state import write
from tests.unit.pipeline.streaming.test_offset_log import commit, plan

T = SourceOptions("t").topic
OTHER = "persistent://a/b/other"


class Folder:
    """A folder of tables whose last run planned batch 1 of the clusters a and b."""

    def __init__(self, out: Path) -> None:
        self.source = SourceOptions(str(out))
        self.checkpoint = Path(checkpoint_path(self.source))
        self.out, self.said = out, list[str]()
        self.checkpoint.mkdir(parents=True)
        (self.checkpoint / "metadata").write_text('{"id": "q"}')
        self._plan(0, {"a": {T: "3:1"}, "b": {T: "3:1"}})
        commit(self.checkpoint, 0)
        write(out, BRONZE_SAMPLES, 0)
        self._plan(1, {"a": {T: "3:2"}, "b": {T: "3:2"}})

    def _plan(self, number: int, offsets: dict[str, dict[str, str]]) -> None:
        plan(self.checkpoint, number, json.dumps(offsets_to_json(offsets)))

    def go_on(self, *clusters: str, topic: str = T, fails: bool = False) -> Continuation:
        urls = tuple(f"pulsar://{each}:1" for each in clusters)
        webs = tuple(f"http://{each}:1" for each in clusters)
        asked = replace(
            self.source, broker_urls=urls, web_urls=webs, topic=topic, fail_on_data_loss=fails
        )
        return prepare_continuation(asked, clusters, self.said.append)

    @property
    def planned(self) -> int:
        batch = newest_batch(str(self.checkpoint))
        assert batch is not None
        return batch.number


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_run_with_the_same_clusters_repeats_the_batch(folder: Folder) -> None:
    assert folder.go_on("b", "a") == Continuation({}, ())
    assert folder.go_on("c", "a", "b") == Continuation({}, ())
    assert (folder.planned, folder.said) == (1, [])


def test_a_plan_of_a_removed_cluster_is_discarded(folder: Folder) -> None:
    """Its messages are read when it returns: the offset before the batch stays."""
    assert folder.go_on("b") == Continuation({}, ())
    assert (folder.planned, folder.said) == (0, [])


def test_a_plan_of_another_topic_is_discarded(folder: Folder) -> None:
    assert folder.go_on("a", "b", topic=OTHER) == Continuation({}, ())
    assert folder.planned == 0


def test_a_batch_in_the_tables_is_not_read_again(folder: Folder) -> None:
    write(folder.out, BRONZE_SAMPLES, 1)
    assert folder.go_on("b") == Continuation({}, ("a",))
    assert (folder.planned, folder.said) == (1, [])


def test_a_batch_that_is_written_in_part_is_told(folder: Folder) -> None:
    write(folder.out, BRONZE_EVENTS, 1)
    with pytest.raises(InputError, match="Run once with the brokers and the topic of that run"):
        folder.go_on("b", fails=True)
    assert folder.go_on("b") == Continuation({}, ("a",))
    assert folder.planned == 1
    assert folder.said == [
        "The last run was stopped while it wrote telemetry of a, which this run does not read: "
        "some of these rows may be missing."
    ]


def test_a_committed_batch_needs_nothing(folder: Folder) -> None:
    commit(folder.checkpoint, 1)
    assert folder.go_on("c") == Continuation({}, ())
    assert folder.planned == 1


def test_two_urls_of_one_cluster_are_told(folder: Folder) -> None:
    urls = ("pulsar://x:1", "pulsar://y:1"), ("http://x:1", "http://y:1")
    asked = replace(folder.source, broker_urls=urls[0], web_urls=urls[1])
    commit(folder.checkpoint, 1)
    prepare_continuation(asked, ["a", "a"], folder.said.append)
    assert folder.said == [
        "http://x:1 and http://y:1 have the same topics (a), which are read once."
    ]


def test_a_foreign_checkpoint_is_refused(folder: Folder) -> None:
    plan(folder.checkpoint, 2, '{"logOffset": 0}')
    with pytest.raises(InputError, match=r"telemetry cannot be used: the checkpoint's offset"):
        folder.go_on("a")
