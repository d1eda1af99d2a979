"""The settings of delayed delivery."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import INT64_MAX
from headgate.policy.schema_settings import SchemaSettings
from headgate.policy.setting_info import setting


@dataclass(slots=True)
class DelayedDeliverySettings(SchemaSettings):
    """The values in force. Field names are Pulsar's keys."""

    delayedDeliveryEnabled: bool = setting(
        True,
        "Shared subscriptions deliver a message when it is due, if its producer asked for a delay; "
        "false delivers all messages at once.",
        dynamic=True,
    )
    delayedDeliveryTickTimeMillis: int = setting(
        1_000,
        "Milliseconds; shown, and without effect: a message is delivered within some milliseconds "
        "after it is due, whatever the tick.",
        dynamic=True,
        minimum=1,
    )
    isDelayedDeliveryDeliverAtTimeStrict: bool = setting(
        False,
        "Shown, and without effect: no message is delivered before it is due, as with true.",
        dynamic=True,
    )
    delayedDeliveryMaxDelayInMillis: int = setting(
        0,
        "Milliseconds from publication to delivery that a message may ask for at most; a longer "
        "delay is refused. 0 is no limit.",
        dynamic=True,
        maximum=INT64_MAX,
    )
    headgateDelayedIndexMemoryMB: int = setting(
        256,
        "Megabytes that the indexes of delayed messages may take, all together: a message takes "
        "about 26 bytes. When they are full, messages behind the last delayed one wait until some "
        "are due, on subscriptions with a sixteenth of it or more; on all of a tenant that alone "
        "has one and a half times as much; on all at twice as much.",
        dynamic=True,
        minimum=1,
    )
