"""Redirects, owners, credentials and one sentence for each failure."""

from __future__ import annotations

import json

import pytest

from headgate.access.admin_api import AccessRefusedError, AdminUrlError, UnreachableError
from headgate.access.client_config import ClientConfig
from headgate.agent.cluster_client import (
    OWNERS_MAX,
    ClusterClient,
    NotABrokerError,
    RedirectError,
)
from headgate.agent.look_plan import LookKind
from headgate.agent.questions import BROKERS as BROKERS_PATH
from headgate.agent.questions import path_of
from headgate.agent.transport import RawReply
from headgate.testing.clock import ManualClock
from headgate.testing.fake_cluster import FakeCluster, FakeTopic, Faults
from tests.unit.agent.clusters import BROKERS, TOPIC, URL, Setting

STATS = path_of(LookKind.STATS, TOPIC)


def setting_with_topic(**others: object) -> Setting:
    setting = Setting(**others)  # type: ignore[arg-type]
    setting.cluster.add([FakeTopic(TOPIC)])
    setting.cluster.move(TOPIC, BROKERS[2])
    return setting


def test_a_request_follows_to_the_owner_and_goes_there_next_time() -> None:
    setting = setting_with_topic()
    setting.client.note_brokers(BROKERS)
    first = setting.client.get(STATS, topic=TOPIC)
    assert (first.status, first.owner, first.requests) == (200, BROKERS[2], 2)
    assert setting.client.owner_of(TOPIC) == BROKERS[2]
    second = setting.client.get(STATS, topic=TOPIC)
    assert (second.owner, second.requests) == (BROKERS[2], 1)
    assert second.took_s == pytest.approx(0.005)


def test_the_instant_of_a_look_is_the_middle_of_the_last_request() -> None:
    setting = setting_with_topic(faults=Faults(took_s=0.2))
    setting.client.note_brokers(BROKERS)
    start_ns = setting.clock.monotonic_ns()
    reply = setting.client.get(STATS, topic=TOPIC)
    assert reply.at_ns == start_ns + 300_000_000
    assert reply.took_s == pytest.approx(0.4)


def test_an_owner_that_is_gone_is_forgotten() -> None:
    setting = setting_with_topic()
    setting.client.note_brokers(BROKERS)
    setting.client.get(STATS, topic=TOPIC)
    setting.faults.gone.add(BROKERS[2])
    with pytest.raises(UnreachableError, match=r"^http://broker-2:8080 did not answer"):
        setting.client.get(STATS, topic=TOPIC)
    setting.cluster.move(TOPIC, BROKERS[1])
    assert setting.client.get(STATS, topic=TOPIC).owner == BROKERS[1]


def test_behind_a_balancer_the_broker_that_answers_is_not_known() -> None:
    setting = Setting()
    setting.cluster.add([FakeTopic(TOPIC)])
    setting.cluster.move(TOPIC, BROKERS[0])
    setting.client.note_brokers(BROKERS)
    assert setting.client.get(STATS, topic=TOPIC).owner == ""
    assert setting.client.owner_of(TOPIC) == ""
    assert setting.client.get(BROKERS_PATH, owner=BROKERS[0]).owner == BROKERS[0]


def test_circles_are_left_after_a_few_requests() -> None:
    setting = setting_with_topic(faults=Faults(is_looping=True))
    setting.client.note_brokers(BROKERS)
    with pytest.raises(RedirectError, match="in circles"):
        setting.client.get(STATS, topic=TOPIC)
    assert len(setting.transport.sent_at_ns) <= 6


class Elsewhere:
    """Sends each request on, and notes what it gets."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.asked: list[tuple[str, str]] = []

    def get(self, url: str, headers: dict[str, str], timeout_s: float, bytes_max: int) -> RawReply:
        self.asked.append((url, headers.get("Authorization", "")))
        return RawReply(307, {"location": self.where}, b"")

    def close(self) -> None: ...


TOKEN = ClientConfig(URL, auth_plugin="token", auth_params="token:secret")


@pytest.mark.parametrize(
    "where",
    [
        "http://evil:8080/admin/v2/x",
        "http://broker-1:9090/admin/v2/x",
        "https://broker-1:8080/admin/v2/x",
        "http://broker-1@evil:8080/x",
        # urlsplit finds the host broker-1 in it, and urllib3 connects to evil.
        "http://evil:8080\\@broker-1:8080/x",
        "http://user:password@broker-1:8080/x",
        "http://broker-1:8080/x y",
    ],
)
def test_credentials_go_to_no_foreign_server(where: str) -> None:
    transport = Elsewhere(where)
    client = ClusterClient(TOKEN, {}, ManualClock(), transport=transport)
    client.note_brokers(BROKERS)
    with pytest.raises(RedirectError, match="no credentials go there"):
        client.get(STATS, topic=TOPIC)
    assert transport.asked == [(f"{URL}{STATS}", "Bearer secret")]


@pytest.mark.parametrize("where", ["", "/relative", "ftp://broker-1:8080/x", "http://[broken/x"])
def test_a_redirect_to_no_url_is_refused(where: str) -> None:
    client = ClusterClient(TOKEN, {}, ManualClock(), transport=Elsewhere(where))
    with pytest.raises(RedirectError, match="no URL"):
        client.get(STATS, topic=TOPIC)


def test_over_tls_a_listed_host_counts_with_any_port() -> None:
    transport = Elsewhere("https://broker-1:8443/x")
    config = ClientConfig("https://balancer:8443")
    client = ClusterClient(config, {}, ManualClock(), transport=transport)
    client.note_brokers(["broker-1:8080", "broker-2:8080"])
    with pytest.raises(RedirectError, match="circles"):
        client.get(STATS, topic=TOPIC)
    assert len(transport.asked) == 2


def test_without_the_right_to_list_brokers_a_lookup_names_the_owner() -> None:
    setting = setting_with_topic()
    reply = setting.client.get(STATS, topic=TOPIC)
    assert reply.owner == BROKERS[2]
    assert f"{URL}/lookup/v2/topic/persistent/acme/shop/orders" in setting.transport.urls
    asked = len(setting.transport.urls)
    setting.client.forget_owner(TOPIC)
    setting.client.get(STATS, topic=TOPIC)
    assert len(setting.transport.urls) == asked + 2  # the broker is known from then on


def test_a_lookup_is_about_its_topic_whatever_the_name() -> None:
    """Clients choose the names of topics."""
    transport = Elsewhere("http://broker-9:8080/x")
    client = ClusterClient(ClientConfig(URL), {}, ManualClock(), transport=transport)
    topic = "persistent://acme/shop/a?b#c d"
    with pytest.raises(RedirectError, match="no broker that the cluster lists"):
        client.get(path_of(LookKind.STATS, topic), topic=topic)
    assert transport.asked[-1][0] == f"{URL}/lookup/v2/topic/persistent/acme/shop/a%3Fb%23c%20d"


def test_a_single_broker_is_asked_at_the_admin_url() -> None:
    setting = Setting(FakeCluster(["localhost:8080"]))
    setting.client.note_brokers(["localhost:8080"])
    reply = setting.client.get(BROKERS_PATH, owner="localhost:8080")
    assert reply.owner == "localhost:8080"
    assert setting.transport.urls[-1].startswith(URL)


def test_a_path_in_the_admin_url_stands_before_requests_there_alone() -> None:
    setting = setting_with_topic(config=ClientConfig(f"{URL}/prefix/"))
    setting.client.note_brokers(BROKERS)
    setting.client.get(BROKERS_PATH, owner=BROKERS[1])
    setting.client.get(BROKERS_PATH)
    assert setting.transport.urls == [
        f"http://{BROKERS[1]}{BROKERS_PATH}", f"{URL}/prefix{BROKERS_PATH}",
    ]  # fmt: skip


class Repeating:
    """Answers with an error that repeats what was sent."""

    def __init__(self, status: int, begin: str = "") -> None:
        self.status = status
        self.begin = begin
        self.place = "ftp://x/Bearer "

    def get(self, url: str, headers: dict[str, str], timeout_s: float, bytes_max: int) -> RawReply:
        body = json.dumps({"reason": f"{self.begin}{headers['Authorization']}"}).encode()
        token = headers["Authorization"].removeprefix("Bearer ")
        return RawReply(self.status, {"location": f"{self.place}{token}"}, body)

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("begin", "shown"),
    [("no: ", "no: Bearer ***"), ("x" * 290, "x" * 290 + "Bearer ***")],
)
def test_a_secret_that_a_broker_repeats_is_in_no_reason(begin: str, shown: str) -> None:
    repeating = Repeating(500, begin)
    client = ClusterClient(TOKEN, {}, ManualClock(), transport=repeating)
    assert client.get(STATS, topic=TOPIC).reason == shown
    repeating.status = 403
    with pytest.raises(AccessRefusedError) as caught:
        client.get(STATS, topic=TOPIC)
    assert caught.value.reason == shown


def test_a_secret_that_a_redirect_repeats_is_in_no_error() -> None:
    client = ClusterClient(TOKEN, {}, ManualClock(), transport=Repeating(307))
    with pytest.raises(RedirectError, match=r"Bearer \*\*\*', no URL"):
        client.get(STATS, topic=TOPIC)


def test_a_secret_that_is_the_host_of_a_redirect_is_in_no_error() -> None:
    repeating = Repeating(307)
    repeating.place = "http://"
    client = ClusterClient(TOKEN, {}, ManualClock(), transport=repeating)
    with pytest.raises(RedirectError, match=r"sends the request on to http://\*\*\*:80, which"):
        client.get(STATS, topic=TOPIC)


def test_a_refusal_names_the_reason_and_no_secret() -> None:
    faults = Faults(refused=lambda path, token: 403)
    setting = setting_with_topic(faults=faults, config=TOKEN)
    with pytest.raises(AccessRefusedError) as caught:
        setting.client.get(BROKERS_PATH)
    assert "super-user" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_web_page_is_no_broker() -> None:
    setting = setting_with_topic(faults=Faults(is_page=True))
    with pytest.raises(NotABrokerError, match="answers with a web page"):
        setting.client.get(BROKERS_PATH)


def test_other_statuses_are_the_callers() -> None:
    setting = setting_with_topic(faults=Faults(status=429))
    reply = setting.client.get(BROKERS_PATH)
    assert (reply.status, reply.is_ok, reply.reason) == (429, False, "too many requests")


@pytest.mark.parametrize("url", ["http://", "ftp://x", "http://a:0", "http://a:99999"])
def test_a_wrong_url_is_named_with_its_option(url: str) -> None:
    with pytest.raises(AdminUrlError, match=r"^--admin-url is "):
        ClusterClient(ClientConfig(url), {}, ManualClock())


def test_a_list_with_no_host_is_no_list_of_brokers() -> None:
    with pytest.raises(NotABrokerError, match="lists a broker"):
        Setting().client.note_brokers(["a b:c:d"])


def test_owners_are_bounded_and_those_of_gone_brokers_forgotten() -> None:
    client = Setting().client
    for index in range(OWNERS_MAX + 10):
        client.note_owner(f"topic-{index}", BROKERS[0])
    assert client.owner_of("topic-0") == ""
    assert client.owner_of(f"topic-{OWNERS_MAX}") == BROKERS[0]
    client.note_brokers(BROKERS[1:])
    assert client.owner_of(f"topic-{OWNERS_MAX}") == ""
