"""``headgate explain`` against a fake Pulsar cluster, in virtual time: what it says, and when it
ends."""

from __future__ import annotations

import gzip
import stat
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from headgate.access.admin_api import AdminApi
from headgate.access.client_config import ClientConfig
from headgate.agent.cluster_client import ClusterClient, NotABrokerError
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.looks import LimitsLook
from headgate.agent.shared_history import SharedHistory
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.cli.explain import look as module
from headgate.cli.explain.errors import ExplainError
from headgate.cli.explain.look import (
    LookRequest,
    client_of,
    judged,
    look_at,
    replayed,
    with_evidence,
)
from headgate.cli.explain.text import explain_text
from headgate.explain.delivery import Instant
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import RateLimit
from headgate.testing.clock import ManualClock
from headgate.testing.fake_cluster import FakeCluster, FakeTransport, Faults, InlineExecutor
from headgate.testing.fake_cluster.cluster import FakeSubscription, FakeTopic
from headgate.testing.fake_cluster.transport import gibberish
from tests.unit.agent.looks import TOPIC, S, backlog, look

NS = "persistent://acme/shop"
SLOW, LEFT, FINE = f"{NS}/slow", f"{NS}/left", f"{NS}/fine"


def cluster() -> FakeCluster:
    found = FakeCluster(["broker-0:8080", "broker-1:8080"], age_ns=600 * NS_PER_S)
    found.add(
        [
            FakeTopic(SLOW, 100, [FakeSubscription(acked_per_s=40, permits=0, unacked=100)]),
            FakeTopic(LEFT, 50, [FakeSubscription("gone", consumers=0)]),
            FakeTopic(FINE, 50, [FakeSubscription(acked_per_s=50)]),
        ]
    )
    return found


class Look:
    """One run of the command, without threads."""

    def __init__(self, faults: Faults | None = None, version: str = "4.0.8") -> None:
        self.clock = ManualClock()
        self.cluster = cluster()
        self.cluster.version = version
        self.transport = FakeTransport(self.cluster, self.clock, faults)
        self.client = ClusterClient(
            ClientConfig("http://pulsar:8080"), {}, self.clock, transport=self.transport
        )
        self.shown: list[tuple[float, str]] = []

    def run(self, **request: Any) -> dict[str, Any]:
        return look_at(
            self.client,
            LookRequest(**request),
            lambda share, sentence: self.shown.append((share, sentence())),
            self.clock,
            lambda seconds: self.clock.advance(round(seconds * NS_PER_S)),
        )


@pytest.fixture(autouse=True)
def _inline(monkeypatch: pytest.MonkeyPatch) -> None:
    def executor(_threads: int, **_options: object) -> Executor:
        return InlineExecutor()

    monkeypatch.setattr(module, "ThreadPoolExecutor", executor)


def by_topic(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {report["topic"]: report for report in answer["subscriptions"]}


def test_the_largest_backlogs_with_their_causes_inferred() -> None:
    look = Look()
    answer = look.run()
    found = by_topic(answer)
    assert (found[SLOW]["verdict"], found[LEFT]["verdict"]) == ("CONSUMER", "NO_CONSUMER")
    assert FINE not in found
    assert (answer["subscriptionsTotal"], answer["withBacklog"]) == (3, 2)
    assert answer["clusterVersion"] == "4.0.8"
    assert found[SLOW]["looks"] > 10
    text = explain_text(answer, 100, color=False)
    assert text.startswith("pulsar:8080, 2025-")
    assert "3 subscriptions of Apache Pulsar 4.0.8, inferred; the" in " ".join(text.split())
    assert "CONSUMER (confidence" in text
    assert "s, since the first look" in text
    assert f"Inferred from {found[SLOW]['looks']} looks in " in text
    # An agent's answer has no release.
    del answer["clusterVersion"]
    assert "3 subscriptions of Apache Pulsar, inferred" in explain_text(answer, 200, color=False)


@pytest.mark.parametrize("subscriptions", [0, 9])
def test_a_list_without_a_backlog_is_no_proof(subscriptions: int) -> None:
    empty = {
        "broker": "pulsar:8080", "at": "2025-01-01T00:00:00.000Z", "withBacklog": 0,
        "subscriptionsTotal": subscriptions, "subscriptions": [], "quotas": [],
        "publishing": [], "damaged": [], "evidence": "inferred", "clusterVersion": "4.0.8",
    }  # fmt: skip
    text = " ".join(explain_text(empty, 100, color=False).split())
    assert "no backlog. A broker lists its topics and their backlogs once a minute" in text
    measured = explain_text(empty | {"evidence": "measured"}, 100, color=False)
    assert "once a minute" not in measured


def test_a_topic_is_looked_at_each_second() -> None:
    look = Look()
    answer = look.run(topic=SLOW)
    (report,) = answer["subscriptions"]
    assert report["verdict"] == "CONSUMER"
    assert 25 <= report["looks"] <= 40
    text = explain_text(answer, 100, color=False)
    assert text.startswith("acme/shop/slow, 2025-")
    assert "Apache Pulsar 4.0.8, inferred" in text
    assert "100 msg/s (9.8 KiB/s) published" in text
    assert "No dispatch limit" not in text


def test_the_progress_goes_from_nothing_to_all_with_a_sentence() -> None:
    look = Look()
    look.run(topic=SLOW, seconds=10)
    shares = [share for share, _ in look.shown]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1] > 0.9) == (0.0, True)
    assert look.shown[0][1] == "looking at the cluster"
    assert "sub: " in look.shown[-1][1]


def test_ctrl_c_ends_the_looks_and_not_the_answer() -> None:
    look = Look()
    left = [60]

    def sleep(seconds: float) -> None:
        look.clock.advance(round(seconds * NS_PER_S))
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    answer = look_at(
        look.client, LookRequest(seconds=300), lambda *_: None, look.clock, sleep
    )  # fmt: skip
    assert by_topic(answer)[LEFT]["backlogMessages"] > 0


@pytest.mark.parametrize(
    ("faults", "status", "text"),
    [
        (Faults(is_page=True), None, "answers with a web page"),
        (Faults(status=503), None, "is neither Headgate nor Apache Pulsar"),
        (Faults(gone={"broker-0:8080", "broker-1:8080"}), None, "did not answer"),
        (Faults(refused=lambda path, _: 403 if "version" not in path and "headgate" not in path
                else None), 2, "the role is no superuser"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_at_is_one_sentence(
    faults: Faults, status: int | None, text: str
) -> None:
    look = Look(faults)
    begin_ns = look.clock.monotonic_ns()
    with pytest.raises(Exception, match=text) as caught:
        look.run(seconds=300)
    assert getattr(caught.value, "exit_code", None) == status
    assert "\n" not in str(caught.value)
    assert look.clock.monotonic_ns() - begin_ns < 10 * NS_PER_S


def test_a_topic_that_does_not_exist_ends_it_at_once() -> None:
    look = Look()
    with pytest.raises(ExplainError, match=f"Topic {NS}/none not found") as caught:
        look.run(topic=f"{NS}/none", seconds=300)
    assert caught.value.exit_code == 2
    assert len(look.shown) <= 2


def refusing(*words: str) -> Faults:
    return Faults(refused=lambda path, _: 403 if any(word in path for word in words) else None)


def test_a_topic_that_the_role_may_not_see_ends_it_at_once() -> None:
    look = Look(refusing("/persistent/"))
    with pytest.raises(ExplainError, match=r"refuses the request \(status 403\)") as caught:
        look.run(topic=SLOW, seconds=300)
    assert caught.value.exit_code == 2
    assert len(look.shown) <= 2


def test_a_namespace_that_the_role_may_not_see_is_the_reason() -> None:
    look = Look(refusing("/persistent/", "/v2/brokers/conf", "/broker-stats"))
    with pytest.raises(ExplainError, match=r"refuses the request \(status 403\)") as caught:
        look.run(namespaces=("acme/shop",), seconds=10)
    assert caught.value.exit_code == 2


def test_a_namespace_that_does_not_exist_has_no_empty_list() -> None:
    """A survey does not tell it from one without a loaded topic."""
    with pytest.raises(ExplainError, match=r"^Namespace acme/shpo not found$") as caught:
        Look().run(namespaces=("acme/shpo",), seconds=5)
    assert caught.value.exit_code == 2
    answer = Look().run(namespaces=("acme/shop", "acme/shpo"), seconds=5)
    assert answer["subscriptionsTotal"] == 3
    assert "Namespace acme/shpo not found" in answer["notSeen"]


def test_a_namespace_without_a_topic_is_none_that_is_missing() -> None:
    look = Look()
    look.cluster.namespaces["acme/new"] = {}
    assert look.run(namespaces=("acme/new",), seconds=5)["subscriptionsTotal"] == 0


def test_an_unknown_server_is_not_pulsar() -> None:
    with pytest.raises(NotABrokerError):
        Look(version="hello").run()


def test_a_cluster_that_loses_a_broker_says_which_and_what_is_not_known() -> None:
    look = Look()
    look.cluster.move(SLOW, "broker-1:8080")
    count = [0]

    def sleep(seconds: float) -> None:
        look.clock.advance(round(seconds * NS_PER_S))
        count[0] += 1
        if count[0] == 50:
            look.transport.faults.gone.add(look.cluster.owner(SLOW))

    answer = look_at(
        look.client, LookRequest(seconds=60), lambda *_: None, look.clock, sleep
    )  # fmt: skip
    broker = look.cluster.owner(SLOW)
    assert any(broker in text and "did not answer" in text for text in answer["notSeen"])
    text = explain_text(answer, 100, color=False)
    assert f"{broker} did not answer" in " ".join(text.split())


def test_clocks_apart_change_no_verdict_and_no_age() -> None:
    """A broker's times are compared with others of the same broker alone."""
    right, apart = Look(), Look()
    apart.cluster.clock_skew_ms = {"broker-0:8080": 3_600_000, "broker-1:8080": -7_200_000}
    found, expected = by_topic(apart.run(seconds=20)), by_topic(right.run(seconds=20))
    assert found.keys() == expected.keys()
    for topic, report in expected.items():
        assert found[topic]["verdict"] == report["verdict"]
        for name in ("oldestAgeS", "backlogSinceS"):  # looks are jittered
            assert found[topic][name] == pytest.approx(report[name], abs=3)


@pytest.mark.parametrize("permits", [0, 1_000])
def test_a_policy_that_the_cluster_accepted_and_does_not_apply_is_not_blamed(permits: int) -> None:
    look = Look()
    look.cluster.is_numbered = True
    unapplied = {"dispatchRate": {
        "dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": -1,
        "ratePeriodInSecond": 1,
    }}  # fmt: skip
    fast = FakeSubscription(acked_per_s=40, permits=permits, unacked=100)
    look.cluster.add([FakeTopic(f"{NS}/unapplied", 100, [fast], policies=unapplied)])
    report = by_topic(look.run())[f"{NS}/unapplied"]
    assert report["verdict"] == ("BROKER" if permits else "CONSUMER")
    assert report["limit"] is None
    assert not any("limits" in text for text in report["notSeen"])


def test_numbers_that_no_broker_should_send_are_never_shown() -> None:
    answer = Look(Faults(spoil=lambda body: gibberish(body) if body[:1] == b"{" else body)).run()
    text = explain_text(answer, 100, color=False)
    assert "nan" not in text.lower()
    assert "e+" not in text
    assert "-7" not in text


def test_a_release_that_is_not_tested_is_said() -> None:
    answer = Look(version="3.0.1").run(seconds=5)
    assert "tested is 4.0.8" in explain_text(answer, 100, color=False).replace("\n", " ")


@pytest.mark.parametrize("is_hashed", [False, True])
def test_a_recorded_run_is_judged_the_same_elsewhere(tmp_path: Path, is_hashed: bool) -> None:
    path = tmp_path / "looks.gz"
    look = Look()
    first = look.run(record_path=str(path), is_hashed=is_hashed)
    again = replayed(str(path), "", 10)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if not is_hashed:
        assert again == first
        return
    names = {"topic", "subscription", "broker", "sentence"}
    for one, two in zip(first["subscriptions"], again["subscriptions"], strict=True):
        assert {k: v for k, v in one.items() if k not in names} == {
            k: v for k, v in two.items() if k not in names
        }
    assert b"acme" not in gzip.decompress(path.read_bytes())


def test_a_recorded_topic_is_judged_the_same_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "looks.gz"
    first = Look().run(topic=SLOW, record_path=str(path))
    assert replayed(str(path), "", 10) == first
    with pytest.raises(ExplainError, match="no look has shown the topic"):
        replayed(str(path), FINE, 10)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.gz cannot be read: No such file"):
        replayed(str(tmp_path / "none.gz"), "", 10)
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(InputError, match="taken exists: --record writes a new file"):
        Look().run(record_path=str(taken))
    assert taken.read_text() == "mine"
    with pytest.raises(InputError, match="cannot be written: No such file"):
        Look().run(record_path=str(tmp_path / "no" / "file"))


def test_nothing_but_reads_go_to_the_cluster() -> None:
    look = Look()
    look.run()
    allowed = ("/admin/v2/brokers", "/admin/v2/broker-stats/topics", "/admin/v2/persistent/",
               "/admin/v2/namespaces/", "/admin/v2/headgate/explain", "/lookup/")  # fmt: skip
    paths = ["/" + url.split("/", 3)[3] for url in look.transport.urls]
    assert all(path.startswith(allowed) for path in paths)


def test_a_file_that_all_may_read_is_no_failure_in_a_thread(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a.b.c")
    token.chmod(0o644)
    config = ClientConfig(auth_plugin="token", auth_params=token.as_uri())
    warnings: list[str] = []
    client = client_of(AdminApi(config, {}, warnings.append))
    assert client._authentication.headers() == {"Authorization": "Bearer a.b.c"}
    assert warnings == []


def test_quotas_and_a_publish_limit_are_part_of_the_answer() -> None:
    history = SharedHistory(ClusterHistory("c"))
    for second in range(6):
        size = 1_000_000 * (second + 1)
        history.note_look(
            look(
                5 * second, backlog("app", backlog=9 * second, backlog_bytes=size),
                published=5_000 * second, quota_size_bytes=10_000_000,
            )
        )  # fmt: skip
    limit = EffectiveLimit(RateLimit(1_000, None), "topic policy")
    history.note_limits(LimitsLook(TOPIC, 25 * S, (NO_LIMIT,) * 3, {}, limit, ()))
    answer = judged(history, TOPIC, 1, Instant(25 * S, 0))
    assert [quota["subscription"] for quota in answer["quotas"]] == ["app"]
    text = _unwrapped(with_evidence(answer, "4.0.8", []))
    assert "publish limit of 1,000 msg/s (topic policy) probably holds producers" in text
    assert answer["quotas"][0]["sentence"][1:] in text
    text = _unwrapped(with_evidence(judged(history, "", 5, Instant(25 * S, 0)), "4.0.8", []))
    assert "Topics whose producers are held:" in text
    assert answer["quotas"][0]["sentence"] in text


def _unwrapped(answer: dict[str, Any]) -> str:
    return " ".join(explain_text(answer, 500, color=False).split())
