"""Looks that were written down are told again, with and without names."""

from __future__ import annotations

import gzip
import io
import json
from random import Random

import pytest

from headgate.agent.bundle import BundleError, End, Header, RecordedHistory, replay
from headgate.agent.limits_reading import LimitAnswers, limits_look
from headgate.agent.look_plan import LookPlan
from headgate.agent.name_hashes import NameHashes
from headgate.agent.request_budget import RequestBudget
from headgate.agent.scout import Scout
from headgate.base.units import NS_PER_S
from headgate.testing.fake_cluster import InlineExecutor
from tests.unit.agent.clusters import BROKERS, TOPIC
from tests.unit.agent.test_scout import NotedHistory, Run, cluster_of

HEADER = Header(
    cluster="http://pulsar:8080", version="4.0.8", topic=TOPIC, started_ns=5, started_ms=7,
    is_hashed=False,
)  # fmt: skip
NAMES = ("acme", "ns-1/", '/topic-1"', "broker-1:8080", "10.0.", '"c-0"', "http")


class Kept(NotedHistory):
    """Keeps all looks."""

    def __init__(self) -> None:
        super().__init__()
        self.namespaces = ["acme/ns-0"]
        self.all: list[object] = []

    def note_look(self, look: object) -> None:
        super().note_look(look)  # type: ignore[arg-type]
        self.all.append(look)


def recorded(hashes: NameHashes | None = None) -> tuple[bytes, Kept, int]:
    """A bundle of a run in which a broker and a topic go, what its history was told, and when."""
    run = Run(cluster_of(20, backlogs=4))
    file, history = io.BytesIO(), Kept()
    recorder = RecordedHistory(history, file, HEADER, hashes)
    run.scout = Scout(
        run.client, recorder, LookPlan(), RequestBudget(), InlineExecutor(), run.clock, Random(1)
    )
    run.play(30)
    run.cluster.remove(history.suspects(1, 0)[0])
    run.faults.gone.add(BROKERS[1])
    run.play(60)
    at_ns = run.clock.monotonic_ns()
    recorder.finish(at_ns, ["broker-1 did not answer"])
    return file.getvalue(), history, at_ns


def test_a_bundle_tells_what_the_history_was_told() -> None:
    data, before, at_ns = recorded()
    after = Kept()
    header, end = replay(io.BytesIO(data), "file", after)
    assert header == HEADER
    assert end == End(at_ns=at_ns, not_seen=["broker-1 did not answer"])
    assert after.all == before.all
    assert (after.proofs, after.limits) == (before.proofs, before.limits)
    assert (after.gone, after.unreachable) == (before.gone, before.unreachable)
    assert before.gone
    assert before.unreachable
    assert before.limits
    assert after.quotas == before.quotas
    assert set(before.quotas) == {"acme/ns-0"}


def test_a_bundle_without_names_has_none_and_tells_the_same_figures() -> None:
    data, before, _ = recorded(NameHashes(b"salt"))
    text = gzip.decompress(data).decode()
    assert not [name for name in NAMES if name in text]
    after = Kept()
    header, end = replay(io.BytesIO(data), "file", after)
    assert header.cluster.startswith("cluster-")
    assert end.not_seen == ["1 sentences"]
    assert len(after.looks) == len(before.looks)
    assert len(after.all) == len(before.all)
    assert sorted(look.published or 0 for look in after.looks.values()) == sorted(
        look.published or 0 for look in before.looks.values()
    )


def test_a_bundle_of_a_killed_run_has_its_looks() -> None:
    data, before, _ = recorded()
    plain = gzip.decompress(data)
    cut = gzip.compress(plain[: len(plain) * 2 // 3])
    for broken in (cut, data[: len(data) * 2 // 3]):
        after = Kept()
        _, end = replay(io.BytesIO(broken), "file", after)
        assert end.is_cut
        assert 0 < len(after.all) < len(before.all)
        assert after.all == before.all[: len(after.all)]
        assert end.at_ns >= after.all[-1].at_ns  # type: ignore[attr-defined]


def of_lines(*lines: object) -> io.BytesIO:
    return io.BytesIO(gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))


START = {
    "kind": "header",
    "value": {"headgateLooks": 1, "cluster": "c", "version": "4", "topic": "", "startedNs": 1,
              "startedMs": 1, "isHashed": False},
}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (io.BytesIO(b""), "is no bundle of looks"),
        (io.BytesIO(b"hello"), "is no bundle of looks: it is no whole gzip file"),
        (io.BytesIO(gzip.compress(b"hello\n")), "is no bundle of looks: a line in it is none"),
        (of_lines({"kind": "look", "value": {}}), "is no bundle of looks: headgate explain"),
        (of_lines({"kind": "header", "value": {"headgateLooks": 2}}), "bundle of version 2"),
        (of_lines({"kind": "header", "value": {"headgateLooks": 1}}), "its header is none"),
        (of_lines(START, {"kind": "look", "value": {"topic": 5}}), "is damaged: a 'look'"),
        (of_lines(START, {"kind": "other", "value": {}}), "is damaged: a 'other'"),
        (of_lines(START, "text"), "is damaged: a line in it is none"),
    ],
)
def test_a_file_that_is_no_bundle_is_named(file: io.BytesIO, text: str) -> None:
    with pytest.raises(BundleError, match=rf"^my\.gz .*{text}"):
        replay(file, "my.gz", Kept())


def test_limits_of_a_namespace_are_told_without_its_name() -> None:
    settings = b'{"dispatchThrottlingRateInMsg": "5"}'
    policies = b'{"topicDispatchRate": {"c": {"dispatchThrottlingRateInMsg": 9}}}'
    answers = LimitAnswers(b"", b"", b"", {}, policies, settings)
    limits = limits_look(TOPIC, NS_PER_S, answers)
    assert any("acme/shop" in limit.source for limit in limits.dispatch)
    hashed = NameHashes(b"salt").limits_look(limits)
    assert not any("acme" in limit.source for limit in hashed.dispatch)
    assert [limit.limit for limit in hashed.dispatch] == [limit.limit for limit in limits.dispatch]
    assert any("namespace policy tenant-" in limit.source for limit in hashed.dispatch)
