"""Settings to paste: each line is one that the broker and its commands know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.broker.settings import Settings
from headgate.flow.adaptive import AdaptiveSettings, Law
from headgate.flow.quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.paste import NAMESPACE, paste
from headgate.pipeline.backtest.policy import Policy, Rates

CLI = (Path(__file__).resolve().parents[4] / "docs/reference/cli.md").read_text()
SIZE = Quota(QuotaType.SIZE, 5_000, QuotaPolicy.HOLD, "grid")
TIME = Quota(QuotaType.TIME, 60_000, QuotaPolicy.EVICTION, "grid")
DRAIN = AdaptiveSettings(law=Law.DRAIN, backlog_low=0.4, backlog_high=0.6)


def test_a_policy_that_is_recorded_switches_the_controller_off() -> None:
    found = paste(Policy())
    assert found.conf == ("adaptivePublisherThrottlingEnabled=false",)
    assert found.commands == ()


def test_limits_and_quotas_are_set_for_each_namespace() -> None:
    policy = Policy(Rates(7, 100), None, SIZE, TIME)
    assert paste(policy, ["acme/a", "acme/b"]).commands[:3] == (
        "headgate admin namespaces set-publish-rate acme/a -m 7 -b 100",
        "headgate admin namespaces set-backlog-quota acme/a --limit 5000 "
        "--policy producer_request_hold --type destination_storage",
        "headgate admin namespaces set-backlog-quota acme/a --limitTime 60 "
        "--policy consumer_backlog_eviction --type message_age",
    )
    assert len(paste(policy, ["acme/a", "acme/b"]).commands) == 6
    assert f" {NAMESPACE} " in paste(policy).commands[0]


def test_what_is_none_is_said_to_be_none() -> None:
    assert paste(Policy(Rates(), None, None, None), ["a/b"]).commands == (
        "headgate admin namespaces set-publish-rate a/b --unlimited",
        "headgate admin namespaces set-backlog-quota a/b --limit -1 "
        "--policy producer_request_hold --type destination_storage",
        "headgate admin namespaces set-backlog-quota a/b --limitTime -1 "
        "--policy producer_request_hold --type message_age",
    )


def test_the_settings_of_the_controller_are_the_broker_s() -> None:
    found = dict(line.split("=") for line in paste(Policy(adaptive=DRAIN)).conf)
    names = {key for key in _field_names() if key.startswith("adaptivePublisherThrottling")}
    assert set(found) == names - {"adaptivePublisherThrottlingPerTopicMetricsEnabled"}
    assert found["adaptivePublisherThrottlingLaw"] == "drain"
    assert found["adaptivePublisherThrottlingBacklogLowWatermarkPct"] == "0.4"
    assert found["adaptivePublisherThrottlingObserveOnly"] == "false"
    assert found["adaptivePublisherThrottlingDrainHorizonMs"] == "10000"


def _field_names() -> set[str]:
    return set(Settings.__dataclass_fields__)


@pytest.mark.parametrize(("low", "high"), [(0.7, 0.8), (0.95, 0.99)])
def test_watermarks_move_in_an_order_that_is_never_refused(low: float, high: float) -> None:
    """Whatever they are now: the low one stays below the high one at every command."""
    moved = replace(DRAIN, backlog_low=0.1, backlog_high=0.2)
    present = {"Low": low, "High": high}
    for command in paste(Policy(adaptive=moved)).commands:
        if "Backlog" in command:
            key, value = command.split()[-3::2]
            present["Low" if "Low" in key else "High"] = float(value)
            assert present["Low"] < present["High"]
    assert present == {"Low": 0.1, "High": 0.2}


def test_the_commands_are_in_the_reference() -> None:
    policy = Policy(Rates(7, 100), DRAIN, SIZE, TIME)
    for command in paste(policy, ["a/b"]).commands:
        head, admin, group, verb, *rest = command.split()
        assert (head, admin) == ("headgate", "admin")
        section = CLI.split(f"### headgate admin {group}\n")[1].split("\n### ")[0]
        assert f"| `{verb}` |" in section
        for word in rest:
            if word.startswith("-") and not word[1:].isdigit():
                assert f"`{word}`" in section
