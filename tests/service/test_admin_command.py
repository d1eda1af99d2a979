"""``headgate admin`` as operators type it: the real command against a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.process import BrokerProcess

NAMESPACE = "public/default"
TOPIC = f"persistent://{NAMESPACE}/orders"
SETTING = "dispatchThrottlingRatePerTopicInMsg"
RATES = {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": -1,
         "relativeToPublishRate": False, "ratePeriodInSecond": 1}  # fmt: skip


class Operator:
    """Types commands."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Carry one out, whatever comes of it."""
        command = [sys.executable, "-m", "headgate.cli", "admin", "--admin-url", self.url]
        return subprocess.run(
            [*command, *words], capture_output=True, text=True, timeout=60, check=False
        )

    def say(self, *words: str) -> str:
        """What one that succeeds prints."""
        done = self.run(*words)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def get(self, *words: str) -> Any:
        """The JSON value that one prints."""
        return json.loads(self.say(*words))


@pytest.fixture(scope="module")
def operator(broker: BrokerProcess) -> Operator:
    operator = Operator(broker.admin_url)
    operator.say("topics", "create", TOPIC)
    return operator


def test_a_limit_of_a_namespace(operator: Operator) -> None:
    assert operator.say("namespaces", "get-dispatch-rate", NAMESPACE) == "null\n"
    words = ["set-dispatch-rate", NAMESPACE, "-md", "100", "--byte-dispatch-rate=1048576"]
    assert operator.say("namespaces", *words) == ""
    expected = RATES | {
        "dispatchThrottlingRateInMsg": 100,
        "dispatchThrottlingRateInByte": 1_048_576,
    }
    assert_has(operator.get("namespaces", "get-dispatch-rate", NAMESPACE), expected)
    assert operator.get("topicPolicies", "get-dispatch-rate", TOPIC) is None
    applied = operator.get("topicPolicies", "get-dispatch-rate", TOPIC, "--applied")
    assert_has(applied, expected)
    policies = operator.get("namespaces", "policies", NAMESPACE)
    assert_has(policies["topicDispatchRate"]["standalone"], expected)
    assert operator.say("namespaces", "remove-dispatch-rate", NAMESPACE) == ""
    assert operator.say("namespaces", "get-dispatch-rate", NAMESPACE) == "null\n"


def test_a_limit_of_a_topic(operator: Operator) -> None:
    operator.say("topicPolicies", "set-dispatch-rate", "orders", "-md", "50", "-dt", "2")
    expected = RATES | {"dispatchThrottlingRateInMsg": 50, "ratePeriodInSecond": 2}
    assert_has(operator.get("topicPolicies", "get-dispatch-rate", "orders"), expected)
    assert_has(operator.get("topics", "get-dispatch-rate", TOPIC, "-ap"), expected)
    operator.say("topicPolicies", "remove-dispatch-rate", "orders")
    assert operator.get("topicPolicies", "get-dispatch-rate", "orders") is None


def test_a_limit_of_one_subscription(operator: Operator) -> None:
    one = [TOPIC, "-s", "billing"]
    operator.say("topicPolicies", "set-subscription-dispatch-rate", TOPIC, "-md", "40")
    operator.say("topicPolicies", "set-subscription-dispatch-rate", *one, "-md", "30")
    of_all = operator.get("topicPolicies", "get-subscription-dispatch-rate", TOPIC)
    assert of_all["dispatchThrottlingRateInMsg"] == 40
    own = operator.get("topicPolicies", "get-subscription-dispatch-rate", *one)
    assert own["dispatchThrottlingRateInMsg"] == 30
    operator.say("topicPolicies", "remove-subscription-dispatch-rate", *one)
    assert operator.get("topicPolicies", "get-subscription-dispatch-rate", *one) is None
    applied = operator.get("topicPolicies", "get-subscription-dispatch-rate", *one, "-ap")
    assert applied["dispatchThrottlingRateInMsg"] == 40
    operator.say("topicPolicies", "remove-subscription-dispatch-rate", TOPIC)


def test_a_publish_limit(operator: Operator) -> None:
    rates = {"publishThrottlingRateInMsg": 50, "publishThrottlingRateInByte": -1}
    operator.say("namespaces", "set-publish-rate", NAMESPACE, "-m", "50")
    assert operator.get("namespaces", "get-publish-rate", NAMESPACE) == rates
    policies = operator.get("namespaces", "policies", NAMESPACE)
    assert policies["publishMaxMessageRate"] == {"standalone": rates}
    assert operator.get("topicPolicies", "get-publish-rate", TOPIC) is None
    assert operator.get("topicPolicies", "get-publish-rate", TOPIC, "--applied") == rates
    operator.say("topics", "set-publish-rate", TOPIC, "--unlimited")
    unlimited = operator.get("topics", "get-publish-rate", TOPIC, "-ap")
    assert unlimited == rates | {"publishThrottlingRateInMsg": -1, "unlimited": True}
    operator.say("topicPolicies", "remove-publish-rate", TOPIC)
    operator.say("namespaces", "remove-publish-rate", NAMESPACE)
    assert operator.get("topicPolicies", "get-publish-rate", TOPIC, "-ap") is None


def test_watermarks_do_not_cross(operator: Operator) -> None:
    low, high = (f"adaptivePublisherThrottlingMemory{end}WatermarkPct" for end in ("Low", "High"))
    done = operator.run("brokers", "update-dynamic-config", "-c", low, "-v", "0.9")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1, f"{low}='0.9' is not allowed; use a number above 0 and below {high} (0.85)",
    )  # fmt: skip
    for name, value in ((high, "0.95"), (low, "0.9")):
        operator.say("brokers", "update-dynamic-config", "-c", name, "-v", value)
    assert operator.run("brokers", "delete-dynamic-config", "-c", high).returncode == 1
    for name in (low, high):
        operator.say("brokers", "delete-dynamic-config", "-c", name)
    assert operator.say("brokers", "get-all-dynamic-config") == ""


def test_a_refusal_names_its_reason(operator: Operator) -> None:
    done = operator.run("namespaces", "set-dispatch-rate", "public/nowhere", "-md", "1")
    reason = "Namespace does not exist"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{reason}\n\nReason: {reason}\n"


def test_a_dynamic_setting(operator: Operator) -> None:
    assert SETTING in operator.say("brokers", "list-dynamic-config").splitlines()
    assert operator.say("brokers", "get-all-dynamic-config") == ""
    change = ["--config", SETTING, "--value", "500"]
    assert operator.say("brokers", "update-dynamic-config", *change) == ""
    assert operator.say("brokers", "get-all-dynamic-config") == f"{SETTING}    500\n"
    assert f"{SETTING}    500" in operator.say("brokers", "get-runtime-config").splitlines()
    assert operator.say("brokers", "delete-dynamic-config", "--config", SETTING) == ""
    assert operator.say("brokers", "get-all-dynamic-config") == ""
    done = operator.run("brokers", "update-dynamic-config", "-c", "clusterName", "-v", "x")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "Can't update non-dynamic configuration: clusterName is read when the broker starts, and "
        "only then",
    )  # fmt: skip


def test_topics_and_subscriptions(operator: Operator) -> None:
    operator.say("namespaces", "create", "public/shop", "-b", "2")
    operator.say("topics", "create-partitioned-topic", "public/shop/carts", "-p", "2")
    operator.say("topics", "update-partitioned-topic", "public/shop/carts", "-p", "3")
    names = [f"persistent://public/shop/carts-partition-{index}" for index in range(3)]
    assert operator.say("topics", "list", "public/shop").splitlines() == names
    found = operator.say("topics", "partitioned-lookup", "public/shop/carts").splitlines()
    assert [line.split("    ")[0] for line in found] == names
    operator.say("topics", "create-subscription", "public/shop/carts", "-s", "a/b")
    assert operator.say("topics", "subscriptions", "public/shop/carts") == "a/b\n"
    operator.say("topics", "reset-cursor", "public/shop/carts", "-s", "a/b", "-t", "1h")
    operator.say("topics", "unsubscribe", "public/shop/carts", "-s", "a/b", "-f")
    stats = operator.get("topics", "partitioned-stats", "public/shop/carts", "--per-partition")
    assert list(stats["partitions"]) == names
    operator.say("topics", "delete-partitioned-topic", "public/shop/carts")
    operator.say("namespaces", "delete", "public/shop")
    assert operator.say("namespaces", "list", "public") == f"{NAMESPACE}\n"


def test_nobody_is_there(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path).start()
    operator = Operator(broker.admin_url)
    assert operator.say("brokers", "healthcheck") == "ok\n"
    assert broker.terminate() == 0
    done = operator.run("brokers", "healthcheck")
    assert (done.returncode, done.stdout) == (1, "")
    assert "refuses the connection: is the broker running there?" in done.stderr
    assert done.stderr.endswith("\n\nError connecting to Pulsar\n")


def assert_has(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Whether all expected fields are there; a broker may say more."""
    assert {name: found.get(name) for name in expected} == expected
