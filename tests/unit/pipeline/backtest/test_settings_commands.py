"""Commands that set a policy: the broker and its commands know each line."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.limit_sources import LimitSources, Namespace, Setting
from headgate.pipeline.backtest.policy import Point, Policy, Rates, settings_of
from headgate.pipeline.backtest.settings_commands import (
    LISTED_MAX,
    NAMESPACE,
    SettingsCommands,
    settings_commands,
)
from headgate.policy.settings import Settings


def namespace(name: str, setting: Setting = Setting.PUBLISH, **levels: Any) -> Namespace:
    """One whose topics follow it in all settings but one."""
    follow = dict.fromkeys(Setting, LimitSources(others=1))
    return Namespace(name, follow | {setting: LimitSources(**levels)} if levels else follow)


A, B = namespace("acme/a"), namespace("acme/b")
CLI = (Path(__file__).resolve().parents[4] / "docs/reference/cli.md").read_text()
SIZE = Quota(QuotaType.SIZE, 5_000, QuotaPolicy.HOLD, "grid")
TIME = Quota(QuotaType.TIME, 60_000, QuotaPolicy.EVICTION, "grid")
ADAPTIVE_NAMES = frozenset(field.name.replace("_ns", "_ms") for field in fields(AdaptiveSettings))
DRAIN = AdaptiveSettings(law=Law.DRAIN, backlog_low=0.4, backlog_high=0.6)


def test_a_policy_that_is_recorded_switches_the_controller_off() -> None:
    found = settings_commands(Policy())
    assert found.conf == ("adaptivePublisherThrottlingEnabled=false",)
    assert found.commands == ()


def test_limits_and_quotas_are_set_for_each_namespace() -> None:
    policy = Policy(Rates(7, 100), None, SIZE, TIME)
    assert settings_commands(policy, [A, B]).commands[::2] == (
        "headgate admin namespaces set-publish-rate acme/a -m 7 -b 100",
        "headgate admin namespaces set-backlog-quota acme/a --limit 5000 "
        "--policy producer_request_hold --type destination_storage",
        "headgate admin namespaces set-backlog-quota acme/a --limitTime 60 "
        "--policy consumer_backlog_eviction --type message_age",
    )
    assert [" acme/b " in command for command in settings_commands(policy, [A, B]).commands] == [
        False,
        True,
    ] * 3
    assert f" {NAMESPACE} " in settings_commands(policy).commands[0]


def test_topics_with_topic_policies_get_separate_commands() -> None:
    mixed = namespace("acme/a", own=("persistent://acme/a/x", "persistent://acme/a/y z"), others=3)
    all_own = namespace("acme/b", own=("persistent://acme/b/x",))
    assert settings_commands(Policy(Rates(7)), [mixed, all_own]).commands == (
        "headgate admin namespaces set-publish-rate acme/a -m 7",
        "# 3 topics have topic policies for the publish limit, which override the namespace's:",
        "headgate admin topicPolicies set-publish-rate persistent://acme/a/x -m 7",
        "headgate admin topicPolicies set-publish-rate 'persistent://acme/a/y z' -m 7",
        "headgate admin topicPolicies set-publish-rate persistent://acme/b/x -m 7",
    )


def test_each_setting_is_set_at_its_present_source() -> None:
    own = namespace("a/b", Setting.SIZE_QUOTA, own=("persistent://a/b/c",))
    limit, comment, size, time = settings_commands(
        Policy(Rates(7), None, SIZE, TIME), [own]
    ).commands
    assert [line.split()[2] for line in (limit, size, time)] == [
        "namespaces", "topicPolicies", "namespaces",
    ]  # fmt: skip
    assert comment.startswith("# 1 topic has a topic policy for the size quota")


def test_a_comment_names_unknown_sources() -> None:
    *_, said = settings_commands(Policy(Rates(7)), [namespace("a/b", unknown=2)]).commands
    assert said == (
        "# It is unknown where the publish limit of 2 topics is set: a topic policy would override "
        "the namespace's."
    )


def test_long_lists_are_cut_and_counted() -> None:
    names = tuple(f"persistent://a/b/{i:02}" for i in range(LISTED_MAX + 2))
    many = [namespace("a/b", Setting.TIME_QUOTA, own=names, others=1)]
    many += [namespace(f"acme/{i:02}") for i in range(LISTED_MAX + 3)]
    lines = settings_commands(Policy(time_quota=TIME), many).commands
    assert len([line for line in lines if " namespaces " in line and line[0] != "#"]) == LISTED_MAX
    assert len([line for line in lines if " topicPolicies " in line]) == LISTED_MAX
    assert "# 4 more namespaces were replayed: set each the same way." in lines
    assert lines[-1] == (
        "# 2 more: the topics in the table intervals whose quota_time_source is 'topic policy'."
    )


def test_a_removed_limit_has_an_explicit_command() -> None:
    assert settings_commands(Policy(Rates(), None, None, None), [namespace("a/b")]).commands == (
        "headgate admin namespaces set-publish-rate a/b --unlimited",
        "headgate admin namespaces set-backlog-quota a/b --limit -1 "
        "--policy producer_request_hold --type destination_storage",
        "headgate admin namespaces set-backlog-quota a/b --limitTime -1 "
        "--policy producer_request_hold --type message_age",
    )


def test_the_settings_of_the_controller_are_the_broker_s() -> None:
    everything = settings_of(Point(0, "", Policy(adaptive=DRAIN), ADAPTIVE_NAMES))["adaptive"]
    found = dict(
        line.split("=") for line in settings_commands(Policy(adaptive=DRAIN), (), everything).conf
    )
    names = {key for key in _field_names() if key.startswith("adaptivePublisherThrottling")}
    assert set(found) == names - {"adaptivePublisherThrottlingPerTopicMetricsEnabled"}
    assert found["adaptivePublisherThrottlingLaw"] == "drain"
    assert found["adaptivePublisherThrottlingBacklogLowWatermarkPct"] == "0.4"
    assert found["adaptivePublisherThrottlingObserveOnly"] == "false"
    assert found["adaptivePublisherThrottlingDrainHorizonMs"] == "10000"


def test_each_different_setting_is_listed_once() -> None:
    found = settings_commands(Policy(adaptive=DRAIN))
    keys = ["Law", "BacklogLowWatermarkPct", "BacklogHighWatermarkPct"]
    told = sorted(f"adaptivePublisherThrottling{key}" for key in keys)
    assert sorted(line.split("=")[0] for line in found.conf[1:]) == told
    commands = [line for line in found.commands if not line.startswith("#")]
    assert sorted(command.split()[-3] for command in commands) == told
    assert found.commands[-1] == (
        "# Settings of adaptivePublisherThrottling* that are not listed have their defaults."
    )
    everything = settings_commands(Policy(adaptive=DRAIN), (), {"memory_low"})
    assert "adaptivePublisherThrottlingMemoryLowWatermarkPct=0.7" in everything.conf


def test_a_comment_names_settings_without_effect() -> None:
    off, on = replace(A, is_adaptive=False), replace(A, is_adaptive=True)
    start = "these have no effect before a start with adaptivePublisherThrottlingEnabled=true:"
    law = Policy(adaptive=replace(DRAIN, observe_only=True))
    assert settings_commands(law, [off]).commands[0] == f"# The controller is off; {start}"
    assert settings_commands(law).commands[0] == f"# Where the controller is off, {start}"
    assert not settings_commands(law, [on]).commands[0].startswith("#")
    assert (
        "# Observe-only: the controller reports its decisions and sets no limit."
        in settings_commands(law).commands
    )
    assert settings_commands(Policy(), [off]).conf == ()
    assert settings_commands(Policy(), [on]).conf == ("adaptivePublisherThrottlingEnabled=false",)


def test_settings_in_force_are_left_out() -> None:
    policy = Policy(Rates(7), None, SIZE, TIME)
    values = {
        Setting.PUBLISH: (7.0, None),
        Setting.SIZE_QUOTA: (5_000, "producer_request_hold"),
        Setting.TIME_QUOTA: (60_000_000_000, "consumer_backlog_eviction"),
    }
    topics = ("persistent://a/b/x", "persistent://a/b/y")
    alike = {
        setting: LimitSources(
            topics, 3, 0, dict.fromkeys(topics, frozenset({value})), frozenset({value})
        )
        for setting, value in values.items()
    }
    assert settings_commands(
        policy, [Namespace("a/b", alike, is_adaptive=False)]
    ) == SettingsCommands((), ())
    other = {topics[0]: frozenset({(8.0, None)}), topics[1]: frozenset({(7.0, None)})}
    changed = alike | {Setting.PUBLISH: replace(alike[Setting.PUBLISH], own_values=other)}
    comment, command = settings_commands(policy, [Namespace("a/b", changed)]).commands
    assert comment.startswith("# 1 topic has a topic policy for the publish limit")
    assert command == f"headgate admin topicPolicies set-publish-rate {topics[0]} -m 7"
    stricter = replace(alike[Setting.PUBLISH], other_values=frozenset({(7.0, None), (1.0, None)}))
    wide = settings_commands(
        policy, [Namespace("a/b", alike | {Setting.PUBLISH: stricter})]
    ).commands
    assert wide == ("headgate admin namespaces set-publish-rate a/b -m 7",)


def _field_names() -> set[str]:
    return set(Settings.__dataclass_fields__)


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.2), (0.95, 0.99), (0.6, 0.9)])
def test_watermarks_are_ordered_as_a_default_broker_accepts_them(low: float, high: float) -> None:
    """The low one stays below the high one at every command."""
    moved = replace(DRAIN, backlog_low=low, backlog_high=high)
    default = AdaptiveSettings()
    present = {"Low": default.backlog_low, "High": default.backlog_high}
    for command in settings_commands(Policy(adaptive=moved)).commands:
        if "Backlog" in command:
            key, value = command.split()[-3::2]
            present["Low" if "Low" in key else "High"] = float(value)
            assert present["Low"] < present["High"]
    assert present == {"Low": low, "High": high}


def test_the_commands_are_in_the_reference() -> None:
    policy = Policy(Rates(7, 100), DRAIN, SIZE, TIME)
    levels = [LimitSources(("persistent://a/b/c",), others=1)] * len(Setting)
    both = Namespace("a/b", dict(zip(Setting, levels, strict=True)))
    lines = settings_commands(policy, [both]).commands
    commands = [line for line in lines if not line.startswith("#")]
    assert {command.split()[2] for command in commands} == {
        "brokers", "namespaces", "topicPolicies",
    }  # fmt: skip
    for command in commands:
        head, admin, group, verb, *rest = command.split()
        assert (head, admin) == ("headgate", "admin")
        section = CLI.split(f"### headgate admin {group}\n")[1].split("\n### ")[0]
        assert f"| `{verb}` |" in section
        for word in rest:
            if word.startswith("-") and not word[1:].isdigit():
                assert f"`{word}`" in section
