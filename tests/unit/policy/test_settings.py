"""Settings: every key, what may be written, and what is said about what may not."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import INT32_MAX
from headgate.policy.setting_info import SettingError
from headgate.policy.settings import SETTINGS, Settings

DYNAMIC = {
    "acknowledgmentAtBatchIndexLevelEnabled",
    "maxSameAddressProducersPerTopic",
    "maxSameAddressConsumersPerTopic",
    "isAllowAutoUpdateSchemaEnabled",
    "headgateSchemaVersionsPerTopic",
    "headgateSchemaMemoryMB",
    "headgateHttpMemoryMB",
    "maxConcurrentHttpRequests",
    "maxHttpServerConnections",
    "httpRequestsLimitEnabled",
    "httpRequestsMaxPerSecond",
    "headgateMetricsSubjectsMax",
    "exposeCustomTopicMetricLabelsEnabled",
    "allowedTopicPropertyKeysForMetrics",
    "metricsServletTimeoutMs",
    "adaptivePublisherThrottlingBacklogHighWatermarkPct",
    "adaptivePublisherThrottlingBacklogLowWatermarkPct",
    "adaptivePublisherThrottlingDrainHorizonMs",
    "adaptivePublisherThrottlingDrainSetPointPct",
    "adaptivePublisherThrottlingIntervalMs",
    "adaptivePublisherThrottlingLaw",
    "adaptivePublisherThrottlingMaxRateChangeFactor",
    "adaptivePublisherThrottlingMemoryHighWatermarkPct",
    "adaptivePublisherThrottlingMemoryLowWatermarkPct",
    "adaptivePublisherThrottlingMinRateFactor",
    "adaptivePublisherThrottlingObserveOnly",
    "adaptivePublisherThrottlingPerTopicMetricsEnabled",
    "allowAutoSubscriptionCreation",
    "allowAutoTopicCreation",
    "allowAutoTopicCreationType",
    "brokerDeleteInactivePartitionedTopicMetadataEnabled",
    "brokerDeleteInactiveTopicsEnabled",
    "brokerDeleteInactiveTopicsFrequencySeconds",
    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds",
    "brokerDeleteInactiveTopicsMode",
    "brokerMaxConnections",
    "brokerMaxConnectionsPerIp",
    "brokerPublisherThrottlingMaxByteRate",
    "brokerPublisherThrottlingMaxMessageRate",
    "defaultNumPartitions",
    "delayedDeliveryEnabled",
    "delayedDeliveryMaxDelayInMillis",
    "delayedDeliveryTickTimeMillis",
    "dispatchThrottlingOnBatchMessageEnabled",
    "dispatchThrottlingOnNonBacklogConsumerEnabled",
    "dispatchThrottlingRateInByte",
    "dispatchThrottlingRateInMsg",
    "dispatchThrottlingRatePerSubscriptionInByte",
    "dispatchThrottlingRatePerSubscriptionInMsg",
    "dispatchThrottlingRatePerTopicInByte",
    "dispatchThrottlingRatePerTopicInMsg",
    "dispatchThrottlingRateRelativeToPublishRate",
    "exposeSubscriptionBacklogAgeInPrometheus",
    "exposeTopicLevelMetricsInPrometheus",
    "forceDeleteNamespaceAllowed",
    "forceDeleteTenantAllowed",
    "headgateDelayedIndexMemoryMB",
    "headgateHoldParkMs",
    "headgateMaxParkedBytesPerConnection",
    "headgateRevokedRoles",
    "headgateRevokedTokenIds",
    "headgateRewriteBytesPerSecond",
    "isDelayedDeliveryDeliverAtTimeStrict",
    "maxConsumersPerSubscription",
    "maxConsumersPerTopic",
    "maxPendingPublishRequestsPerConnection",
    "maxNamespacesPerTenant",
    "maxProducersPerTopic",
    "maxPublishRatePerTopicInBytes",
    "maxPublishRatePerTopicInMessages",
    "maxSubscriptionsPerTopic",
    "headgateMaxStoragePerTenantMB",
    "headgateMaxSubscriptionsPerTenant",
    "maxTopicsPerNamespace",
    "subscriptionTypesEnabled",
}
"""Each of these has a test in test_service.py, or beside what it controls."""


A = "adaptivePublisherThrottling"


@pytest.mark.parametrize("name", SETTINGS)
def test_every_key(name: str) -> None:
    info = SETTINGS[name]
    settings = Settings()
    assert info.name == name
    assert info.doc.endswith(".")
    assert info.allowed
    assert getattr(settings, name) == info.default
    if isinstance(info.default, int | float) and not isinstance(info.default, bool):
        assert info.minimum is not None
        assert info.maximum is not None
        assert info.minimum <= info.default <= info.maximum
    else:
        assert (info.minimum, info.maximum) == (None, None)
    text = settings.text(name)
    settings.set(name, f"  {text} ")
    assert getattr(settings, name) == info.default
    assert settings.text(name) == text


def test_which_may_change_while_the_broker_runs() -> None:
    assert {name for name, info in SETTINGS.items() if info.dynamic} == DYNAMIC


def test_text_is_as_a_settings_file_has_it() -> None:
    settings = Settings()
    settings.set("allowAutoTopicCreation", "FALSE")
    settings.set("dispatchThrottlingRateInMsg", "-1")
    settings.set("allowAutoTopicCreationType", "partitioned")
    assert settings.text("allowAutoTopicCreation") == "false"
    assert settings.text("dispatchThrottlingRateInMsg") == "-1"
    assert settings.text("allowAutoTopicCreationType") == "partitioned"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("brokerServicePort", "65536", "an integer from -1 to 65535"),
        ("brokerServicePort", "-2", "an integer from -1 to 65535"),
        ("brokerServicePort", "", "an integer from -1 to 65535"),
        ("brokerServicePort", "6650x", "an integer from -1 to 65535"),
        ("brokerServicePort", "6_650", "an integer from -1 to 65535"),
        ("brokerServicePort", "٦٦٥٠", "an integer from -1 to 65535"),
        ("brokerServicePort", "6650.0", "an integer from -1 to 65535"),
        ("brokerServicePort", "0x10", "an integer from -1 to 65535"),
        ("defaultNumPartitions", "9" * 10_000, "an integer from 1 to 4096"),
        ("defaultNumPartitions", "4097", "an integer from 1 to 4096"),
        ("keepAliveIntervalSeconds", "0", f"an integer from 1 to {INT32_MAX}"),
        ("dispatchThrottlingRateInMsg", "-2", f"an integer from -1 to {INT32_MAX}"),
        ("dispatchThrottlingRateInByte", str(1 << 63), f"an integer from -1 to {(1 << 63) - 1}"),
        ("backlogQuotaDefaultLimitGB", "-1.5", "a number from -1 to 8589934591"),
        ("backlogQuotaDefaultLimitGB", "1e10", "a number from -1 to 8589934591"),
        ("backlogQuotaDefaultLimitGB", "1_0.5", "a number from -1 to 8589934591"),
        ("backlogQuotaDefaultLimitGB", ".5", "a number from -1 to 8589934591"),
        ("backlogQuotaDefaultLimitGB", "nan", "a number from -1 to 8589934591"),
        ("backlogQuotaDefaultLimitGB", "inf", "a number from -1 to 8589934591"),
        (f"{A}MinRateFactor", "0", "a number above 0 and up to 1"),
        (f"{A}MinRateFactor", "1.01", "a number above 0 and up to 1"),
        (f"{A}MaxRateChangeFactor", "0.0", "a number above 0 and up to 1"),
        (f"{A}MaxRateChangeFactor", "-0.1", "a number above 0 and up to 1"),
        (f"{A}MemoryHighWatermarkPct", "0", "a number above 0 and up to 1"),
        (f"{A}BacklogHighWatermarkPct", "85", "a number above 0 and up to 1"),
        (f"{A}MemoryLowWatermarkPct", "1", "a number above 0 and below 1"),
        (f"{A}BacklogLowWatermarkPct", "0", "a number above 0 and below 1"),
        (f"{A}DrainSetPointPct", "0", "a number above 0 and below 1"),
        (f"{A}DrainSetPointPct", "1.0", "a number above 0 and below 1"),
        (f"{A}IntervalMs", "9", "an integer from 10 to 600000"),
        (f"{A}IntervalMs", "600001", "an integer from 10 to 600000"),
        (f"{A}DrainHorizonMs", "99", "an integer from 100 to 600000"),
        (f"{A}DrainHorizonMs", "600001", "an integer from 100 to 600000"),
        (f"{A}Law", "hope", "pressure or drain"),
        (f"{A}Enabled", "1", "true or false"),
        ("maxPublishRatePerTopicInMessages", "-2", f"an integer from -1 to {INT32_MAX}"),
        ("maxPublishRatePerTopicInBytes", "-2", f"an integer from -1 to {(1 << 63) - 1}"),
        ("headgateMemoryLimitMB", "-1", f"an integer from 0 to {INT32_MAX}"),
        ("allowAutoTopicCreation", "yes", "true or false"),
        ("allowAutoTopicCreation", "1", "true or false"),
        ("allowAutoTopicCreationType", "Partitioned", "non-partitioned or partitioned"),
    ],
)
def test_what_is_not_allowed_is_named_with_what_is(name: str, value: str, allowed: str) -> None:
    settings = Settings()
    before = settings.text(name)
    with pytest.raises(SettingError) as refusal:
        settings.set(name, value)
    assert str(refusal.value) == f"{name}={value[:80]!r} is not allowed; use {allowed}"
    assert settings.text(name) == before


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("MinRateFactor", ("1e-9", "1")),
        ("MemoryHighWatermarkPct", ("0.001", "1.0")),
        ("MemoryLowWatermarkPct", ("0.001", "0.999")),
        ("DrainSetPointPct", ("0.01", "0.99")),
        ("IntervalMs", ("10", "600000")),
        ("DrainHorizonMs", ("100", "600000")),
        ("Law", ("drain", "pressure")),
    ],
)
def test_the_ends_of_what_adaptive_throttling_takes(name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        Settings().set(A + name, text)


def test_the_defaults_of_adaptive_throttling_and_publish_limits() -> None:
    """The first ten are those of the proposal for Pulsar."""
    assert {
        name: info.default
        for name, info in SETTINGS.items()
        if name.startswith(A) or ("ublish" in name and "Rate" in name and "ispatch" not in name)
    } == {
        f"{A}Enabled": False,
        f"{A}ObserveOnly": False,
        f"{A}IntervalMs": 1_000,
        f"{A}MemoryHighWatermarkPct": 0.85,
        f"{A}MemoryLowWatermarkPct": 0.70,
        f"{A}BacklogHighWatermarkPct": 0.90,
        f"{A}BacklogLowWatermarkPct": 0.75,
        f"{A}MinRateFactor": 0.10,
        f"{A}MaxRateChangeFactor": 0.25,
        f"{A}PerTopicMetricsEnabled": False,
        f"{A}Law": "pressure",
        f"{A}DrainSetPointPct": 0.70,
        f"{A}DrainHorizonMs": 10_000,
        "maxPublishRatePerTopicInMessages": 0,
        "maxPublishRatePerTopicInBytes": 0,
        "brokerPublisherThrottlingMaxMessageRate": 0,
        "brokerPublisherThrottlingMaxByteRate": 0,
    }


def test_gigabytes_may_have_parts() -> None:
    """As in Pulsar, which shows the default as -1.0."""
    settings = Settings()
    assert settings.text("backlogQuotaDefaultLimitGB") == "-1.0"
    for text, value in (("10", 10.0), ("0.5", 0.5), ("-1", -1.0), ("1e-5", 1e-5)):
        settings.set("backlogQuotaDefaultLimitGB", text)
        assert settings.backlogQuotaDefaultLimitGB == value
        settings.set("backlogQuotaDefaultLimitGB", settings.text("backlogQuotaDefaultLimitGB"))
        assert settings.backlogQuotaDefaultLimitGB == value


@pytest.mark.parametrize("name", ["set", "text", "clustername", "", "__class__"])
def test_unknown_keys(name: str) -> None:
    with pytest.raises(KeyError):
        Settings().set(name, "x")


@given(st.sampled_from(sorted(SETTINGS)), st.text())
def test_any_text_is_taken_or_refused(name: str, text: str) -> None:
    settings = Settings()
    before = value = settings.text(name)
    with contextlib.suppress(SettingError):
        settings.set(name, text)
        value = settings.text(name)
        settings.set(name, value)
    assert settings.text(name) == value
    assert value == before or SETTINGS[name].parse(text) == SETTINGS[name].parse(value)
