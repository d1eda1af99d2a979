"""The publish limits of a real broker, as real clients meet them.

Limits are upper bounds that no noise excuses: a receipt comes after its message was accepted, so
that at no instant more of them can be there than the limit allowed until then. That all of a limit
is used is judged with an allowance for time that the machine measurably took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pulsar
import pytest

from tests.service.clients import EARLIEST, QUIET, SHARED, client_of, wait_until
from tests.service.measuring import Noise, Rest, each_second, most_in, topic_path
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import CONFIGURATION, Sending, setting, stored, words

pytestmark = pytest.mark.waits

SOON_S = 0.5
"""By when is done what nothing holds."""
BROKER_MESSAGES = "brokerPublisherThrottlingMaxMessageRate"
BROKER_BYTES = "brokerPublisherThrottlingMaxByteRate"
TOPIC_MESSAGES = "maxPublishRatePerTopicInMessages"
TOPIC_BYTES = "maxPublishRatePerTopicInBytes"
WINDOW = 1_000
"""What a client sends unanswered by default."""

Make = Callable[..., BrokerProcess]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """It asks its clients every second whether they are there."""
    process = BrokerProcess(tmp_path_factory.mktemp("limited"), words(keepAliveIntervalSeconds=1))
    process.start()
    try:
        yield process
    finally:
        process.close()


def rate(messages: int = -1, size_bytes: int = -1) -> dict[str, int]:
    """A publish rate as admin REST takes it."""
    return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size_bytes}


def limit(rest: Rest, topic: str, messages: int = -1, size_bytes: int = -1) -> None:
    """Set a topic's own publish rate."""
    rest.ask("POST", f"{topic_path(topic)}/publishRate", rate(messages, size_bytes))


def unlimit(rest: Rest, topic: str) -> None:
    rest.ask("DELETE", f"{topic_path(topic)}/publishRate")


def topic_in(rest: Rest, namespace: str, name: str = "t") -> str:
    """A new topic."""
    topic = f"persistent://{namespace}/{name}"
    rest.ask("PUT", topic_path(topic))
    return topic


@contextmanager
def sending(
    broker: BrokerProcess, topic: str, *, payload_bytes: int = 20, **options: Any
) -> Iterator[Sending]:
    """A producer on a connection of its own; what it has parked at the end is forgotten."""
    with client_of(broker.service_url) as client:
        yield Sending(client, topic, f"p{time.monotonic_ns()}", payload_bytes, **options)


def told_at(one: Sending) -> list[float]:
    """When each receipt came, in order."""
    return [at for _, _, at in list(one.told)]


def check_never_more(at: list[float], begin: float, per_s: float, entry: float = 1) -> None:
    """At no instant were more receipts there than the limit allowed until then; ``begin`` is not
    after the first send. This holds however late receipts are."""
    for count, instant in enumerate(at, 1):
        assert count <= per_s * (int(instant - begin) + 1) + entry, (count, instant - begin)


def told(one: Sending, seconds: float) -> int:
    """How many receipts there are after so many seconds more."""
    time.sleep(seconds)
    return len(one.told)


# Rules 3.1 and 3.2: bounds, use and order, second by second --------------------------------------


def test_each_second_carries_the_limit_and_no_instant_more(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.2: single messages, batches, bytes, and five clients on the broker's limit."""
    seconds, payload_bytes = 5, 1_000
    single, batched, sized = (topic_in(rest, namespace, name) for name in ("one", "batch", "bytes"))
    limit(rest, single, 100)
    limit(rest, batched, 200)
    limit(rest, sized, -1, 50_000)
    batch = {"batching_enabled": True, "batching_max_messages": 20}
    with (
        sending(broker, single) as ones,
        sending(broker, batched, **batch) as batches,
        sending(broker, sized, payload_bytes=payload_bytes) as bytes_,
        Noise([broker.pid]) as noise,
    ):
        begin = time.monotonic()
        for one in (ones, batches, bytes_):
            one.send(2_000)
        time.sleep(seconds + 0.2)
        end = time.monotonic()
        lost_s = [noise.lost_s(broker.pid, begin + s, begin + s + 1) for s in range(seconds)]
        stats = rest.topic(sized)
        entry_bytes = stats["bytesInCounter"] / stats["msgInCounter"]
        late_s = 0.1 + 2 * noise.late_most_s
        for one, per_s, entry in (
            (ones, 100, 1),
            (batches, 200, 20),
            (bytes_, 50_000 / entry_bytes, 1),
        ):
            at = told_at(one)
            check_never_more(at, begin, per_s, entry)
            steady = [instant for instant in at if begin + 1.2 <= instant <= end]
            assert most_in(steady, 1 - late_s) <= per_s + entry
            counts = each_second(at, begin, end)[:seconds]
            for second in range(2, seconds):
                least = (0.9 - lost_s[second]) * per_s - entry
                assert counts[second] >= least, (per_s, counts, lost_s)
            whole = sum(counts[1:])
            assert whole >= (0.97 * (seconds - 1) - sum(lost_s)) * per_s - entry, (per_s, counts)
            assert [text for text, _, _ in list(one.told)] == one.sent[: len(one.told)]


def test_five_clients_share_the_brokers_limit(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 3.1 and 3.2."""
    topics = [topic_in(rest, namespace, f"t{number}") for number in range(5)]
    clients = [pulsar.Client(broker.service_url, logger=QUIET) for _ in topics]
    sendings = [
        Sending(c, t, f"p{n}", 20) for n, (c, t) in enumerate(zip(clients, topics, strict=True))
    ]
    with setting(rest, BROKER_MESSAGES, 500), Noise([broker.pid]) as noise:
        begin = time.monotonic()
        for one in sendings:
            one.send(1_000)
        time.sleep(3.2)
        at = sorted(instant for one in sendings for instant in told_at(one))
        lost_s = noise.lost_s(broker.pid, begin, begin + 3)
    check_never_more(at, begin, 500)
    counts = each_second(at, begin, begin + 3)
    assert sum(counts[1:]) >= (0.97 * 2 - lost_s) * 500, counts
    steady = [sum(begin + 1 <= instant < begin + 3 for instant in told_at(one)) for one in sendings]
    first = [sum(instant < begin + 1 for instant in told_at(one)) for one in sendings]
    # Whoever was first had the burst; from then on they share.
    assert max(steady) - min(steady) <= 12 + 500 * (lost_s + 0.05), (first, steady)
    for client in clients:
        client.close()


def test_one_send_is_stored_in_time_while_nothing_else_happens(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.2: the broker wakes by itself."""
    topic = topic_in(rest, namespace)
    limit(rest, topic, 1)
    with sending(broker, topic) as one:
        one.send(1)
        one.finish(5)
        began = time.monotonic()
        one.send(1)
        one.finish(5)
        assert told_at(one)[1] - began < 1 + SOON_S


# Rule 3.1: others on the same connection ---------------------------------------------------------


def latencies_s(one: Sending, sent_at: list[float]) -> list[float]:
    return sorted(at - sent for sent, at in zip(sent_at, told_at(one), strict=True))


def paced(one: Sending, seconds: float, per_s: int = 100) -> list[float]:
    """Send evenly; returns when each message was sent."""
    begin, sent_at = time.monotonic(), []
    for number in range(int(seconds * per_s)):
        time.sleep(max(0.0, begin + number / per_s - time.monotonic()))
        sent_at.append(time.monotonic())
        one.send(1)
    one.finish()
    return sent_at


def test_neighbours_on_one_connection_notice_nothing(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.1: one producer is held at 10 messages a second with its client's default window full.
    The others of its client, which has one connection, keep their rate and their 99th percentile;
    acknowledgements, permits, lookups and the broker's own pings go on."""
    held, free = topic_in(rest, namespace, "held"), topic_in(rest, namespace, "free")
    limit(rest, held, 10)
    with client_of(broker.service_url) as client, Noise([broker.pid]) as noise:
        before = Sending(client, free, "before", 100)
        alone = latencies_s(before, paced(before, 2))
        consumer = client.subscribe(
            free, "s", SHARED, initial_position=EARLIEST, receiver_queue_size=50
        )
        slow = Sending(client, held, "slow", 100, max_pending_messages=WINDOW)
        slow.send(WINDOW)
        began = time.monotonic()
        time.sleep(0.3)
        neighbour = Sending(client, free, "beside", 100)
        beside = latencies_s(neighbour, paced(neighbour, 2))
        late_s = noise.late_most_s + noise.lost_s(broker.pid, began, time.monotonic()) / 5
        for _ in range(400):
            consumer.acknowledge(consumer.receive(10_000))
        wait_until(lambda: rest.topic(free)["subscriptions"]["s"]["msgBacklog"] == 0, 5)
        assert client.get_topic_partitions(free) == [free]
        elapsed_s = time.monotonic() - began
        assert 10 * int(elapsed_s - 0.5) <= len(slow.told) <= 10 * (int(elapsed_s) + 1) + 1
        connections = {each["address"] for each in rest.topic(held)["publishers"]}
        assert connections == {each["address"] for each in rest.topic(free)["publishers"]}
    p99, usual = (each[int(0.99 * len(each))] for each in (beside, alone))
    middle, usual_middle = (each[len(each) // 2] for each in (beside, alone))
    assert middle <= 2 * usual_middle + 0.005 + late_s, (middle, usual_middle)
    assert p99 <= 2 * usual + 0.03 + late_s, (p99, usual, late_s)


def test_more_unanswered_sends_than_a_connection_may_have_all_complete(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.1: they wait for answers, and come in order."""
    topic = topic_in(rest, namespace)
    with setting(rest, "maxPendingPublishRequestsPerConnection", 5), sending(broker, topic) as one:
        one.send(2_000)
        one.finish()
        assert one.with_result() == one.sent
    assert stored(broker.service_url, topic) == one.sent


def test_what_is_parked_is_bounded_and_its_connection_lives(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.1: beyond the bound the socket is not read, and what it is told then is true."""
    topic, bound, large = topic_in(rest, namespace), 1 << 20, 100_000
    limit(rest, topic, 1)
    with (
        setting(rest, "headgateMaxParkedBytesPerConnection", bound),
        sending(broker, topic, payload_bytes=large) as one,
    ):
        one.send(60)
        time.sleep(0.8)
        parked = series(broker, "headgate_publish_parked_bytes", topic)["topic_rate"]
        assert bound < parked <= bound + large + 1_000
        held_s = series(broker, "headgate_publish_parked_seconds_total", topic)
        assert held_s["topic_rate"] > 0
        assert not held_s.get("memory")  # its own limit is to blame (rule 3.5)
        time.sleep(1.5)  # longer than the broker waits for a sign of life
        unlimit(rest, topic)
        one.finish(15)
        assert one.with_result() == one.sent


# Rule 3.3: several limits, and changes -----------------------------------------------------------


@pytest.mark.parametrize("dimension", ["messages", "bytes"])
def test_a_namespaces_limit_acts_and_its_removal_releases_at_once(
    broker: BrokerProcess, rest: Rest, namespace: str, dimension: str
) -> None:
    """Rule 3.3: removed by -1 as with Pulsar."""
    topic = topic_in(rest, namespace)
    path = f"/admin/v2/namespaces/{namespace}/publishRate"
    rest.ask("POST", path, rate(10) if dimension == "messages" else rate(-1, 400))
    with sending(broker, topic) as one:
        begin = time.monotonic()
        one.send(200)
        assert told(one, 0.9) >= 1
        check_never_more(told_at(one), begin, 10)
        rest.ask("POST", path, rate(-1, -1))
        one.finish(1 + SOON_S)
        assert one.with_result() == one.sent


def test_the_lower_of_the_brokers_and_the_topics_limit_holds(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.3: removing the lower one leaves the other."""
    topic = topic_in(rest, namespace)
    limit(rest, topic, 20)
    rest.ask("POST", f"{CONFIGURATION}/{BROKER_MESSAGES}/80")
    try:
        with sending(broker, topic) as one:
            one.send(1_000)
            assert 35 <= told(one, 1.9) <= 41
            unlimit(rest, topic)
            # What was accepted in the last second counts: a burst of the difference, then a pause.
            before = len(one.told)
            assert 110 <= told(one, 1.9) - before <= 2 * 80 + 1
            rest.ask("DELETE", f"{CONFIGURATION}/{BROKER_MESSAGES}")
            one.finish(1 + SOON_S)
    finally:
        rest.ask("DELETE", f"{CONFIGURATION}/{BROKER_MESSAGES}")


def test_dynamic_settings_change_one_dimension_and_leave_the_other(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.3: of a topic that is loaded, with a producer that is held."""
    topic = topic_in(rest, namespace)
    with setting(rest, TOPIC_MESSAGES, 20), sending(broker, topic) as one:
        one.send(800)
        assert told(one, 0.9) == 20
        with setting(rest, TOPIC_BYTES, 1_000_000):
            assert told(one, 1.0) <= 41
            rest.ask("POST", f"{CONFIGURATION}/{TOPIC_MESSAGES}/0")
            one.finish(1 + SOON_S)
            limit(rest, topic, -1, 1)
            one.send(50)
            before = told(one, 0.5)
            assert before <= 801
            unlimit(rest, topic)
            one.finish(1 + SOON_S)


def test_a_raise_releases_at_once_however_large_the_debt(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.3: a batch of hundreds at one message a second owes minutes."""
    topic = topic_in(rest, namespace)
    limit(rest, topic, 1)
    batch = {"batching_enabled": True, "batching_max_messages": 500}
    with sending(broker, topic, **batch) as one:
        one.send(2_000)
        assert told(one, SOON_S) == 500
        limit(rest, topic, 1_000_000)
        one.finish(1 + SOON_S)
        limit(rest, topic, 1)
        one.send(1_000)
        assert told(one, SOON_S) < 3_000
        unlimit(rest, topic)
        one.finish(1 + SOON_S)


def test_settings_of_the_start_are_in_force_from_the_first_message_on(make_broker: Make) -> None:
    """Rule 3.2: and what comes first may go at once."""
    broker = make_broker("limited", words(**{BROKER_MESSAGES: 30, TOPIC_MESSAGES: 5})).start()
    topic = "persistent://public/default/t"
    with sending(broker, topic) as one:
        begin = time.monotonic()
        one.send(40)
        wait_until(lambda: len(one.told) >= 5, 5)
        assert told_at(one)[4] - begin < SOON_S
        assert told(one, begin + 2.5 - time.monotonic()) >= 9
        check_never_more(told_at(one), begin, 5)


# Rule 3.4: ends ----------------------------------------------------------------------------------


def test_a_producer_that_closes_while_it_is_held_leaves_nothing_behind(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.4: what it parked is not stored, and the next one is not blocked."""
    topic = topic_in(rest, namespace)
    limit(rest, topic, 2)
    with sending(broker, topic) as one:
        one.send(50)
        accepted = told(one, 0.7)
        one.producer.close()
        stored_before = len(stored(broker.service_url, topic))
        assert accepted <= stored_before <= 4
        wait_until(
            lambda: not series(broker, "headgate_publish_parked_bytes", topic).get("topic_rate"), 2
        )
        time.sleep(1.5)
        with sending(broker, topic) as heir:
            began = time.monotonic()
            heir.send(1)
            heir.finish(5)
            assert told_at(heir)[0] - began < SOON_S
    assert len(stored(broker.service_url, topic)) == stored_before + 1


def test_a_limit_blocks_no_policies_and_no_first_message(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 3.2 and 3.4: Pulsar's policies are messages themselves, Headgate's are not."""
    topic = topic_in(rest, namespace)
    rest.ask("POST", f"/admin/v2/namespaces/{namespace}/publishRate", rate(1, 10))
    with sending(broker, topic) as one:
        began = time.monotonic()
        one.send(2)
        wait_until(lambda: len(one.told) == 1, SOON_S + 2)
        assert told_at(one)[0] - began < SOON_S
        for messages in range(2, 12):
            limit(rest, topic, messages, 10)
        assert time.monotonic() - began < 5
        assert len(one.told) == 1


# Rule 3.5: figures -------------------------------------------------------------------------------


def series(broker: BrokerProcess, name: str, topic: str) -> dict[str, float]:
    """A topic's samples of one metric by their cause; ``""`` where there is no such label."""
    status, text = broker.get("/metrics")
    assert status == 200
    found = {}
    for line in text.decode().splitlines():
        if line.startswith(name + "{") and f'topic="{topic}"' in line:
            cause = line.partition('cause="')[2].partition('"')[0]
            found[cause] = float(line.rpartition(" ")[2])
    return found


def test_figures_of_pulsar_keep_their_meaning_and_others_tell_the_truth(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 3.5: one limited topic, a second one on its connection, a third on another: 1, 1, 0."""
    topics = [topic_in(rest, namespace, name) for name in ("limited", "beside", "elsewhere")]
    limit(rest, topics[0], 10)
    with client_of(broker.service_url) as client, sending(broker, topics[2]) as third:
        first, second = (Sending(client, topic, "p", 20) for topic in topics[:2])
        first.send(25)
        second.send(25)
        third.send(25)
        for one in (first, second, third):
            one.finish(5)
    counts = [series(broker, "pulsar_publish_rate_limit_times", topic)[""] for topic in topics]
    assert counts == [1, 1, 0]
    assert [rest.topic(topic)["publishRateLimitedTimes"] for topic in topics] == counts
    seconds = [series(broker, "headgate_publish_parked_seconds_total", topic) for topic in topics]
    assert seconds[1:] == [{}, {}]
    assert seconds[0].keys() == {"topic_rate"}
    assert 1.0 <= seconds[0]["topic_rate"] <= 3.0
