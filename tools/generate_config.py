"""Write conf/broker.conf, every setting with its help and its default, from the settings' model.

``--check`` changes nothing and fails when the committed file differs from what would be written.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from committed_files import write_or_check

from headgate.policy.setting_info import SettingInfo
from headgate.policy.settings import SETTINGS, Settings

PATH = Path("conf/broker.conf")
COLUMNS_MAX = 100

HEAD = (
    "Settings of a Headgate broker: headgate standalone --config conf/broker.conf",
    "This file has every setting with its default, commented out: remove the # and change the "
    "value. Keys that begin with headgate are additions; the others are Pulsar's. A broker.conf "
    "of Pulsar works as well.",
    "You can change a dynamic setting while the broker runs: headgate admin brokers "
    "update-dynamic-config --config KEY --value VALUE. It acts at once, is stored, and overrides "
    "this file until delete-dynamic-config.",
    "Written by tools/generate_config.py from src/headgate/policy/settings.py. Change that, then "
    "run the tool.",
)

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "clusterName": "The broker and its addresses",
        "keepAliveIntervalSeconds": "Connections",
        "allowAutoTopicCreation": "Topics",
        "defaultRetentionTimeInMinutes": "Retention",
        "backlogQuotaCheckEnabled": "Backlog quotas",
        "managedLedgerCacheSizeMB": "Storage",
        "maxUnackedMessagesPerConsumer": "Consumers",
        "dispatchThrottlingRateInMsg": "Dispatch limits",
        "maxPublishRatePerTopicInMessages": "Publish limits",
        "adaptivePublisherThrottlingEnabled": "Adaptive publish throttling (experimental)",
        "exposeTopicLevelMetricsInPrometheus": "Metrics",
        "headgateTelemetryEnabled": "Telemetry",
        "openIDAllowedTokenIssuers": "OpenID Connect (AuthenticationProviderOpenID)",
        "headgateRevokedRoles": "Revocation of roles and tokens",
    }
)
"""The titles, each by the key that it stands before; the order is the model's."""

QUICK_START_KEY = "adaptivePublisherThrottlingEnabled"
QUICK_START = """\
# 1. Watch first, after a restart: log, explain and telemetry show every decision.
adaptivePublisherThrottlingEnabled=true
adaptivePublisherThrottlingObserveOnly=true
# 2. Go live if the decisions look right, without a restart; true switches it off at once.
#    headgate admin brokers update-dynamic-config \\
#        --config adaptivePublisherThrottlingObserveOnly --value false
"""
"""How to begin with adaptive throttling; README.md has the same lines."""


def pages() -> dict[Path, str]:
    """The file's path below the repository root, and its text."""
    parts = ["#\n".join(_comment(paragraph) for paragraph in HEAD)]
    if unknown := SECTIONS.keys() - SETTINGS.keys():
        raise LookupError(f"sections begin at {sorted(unknown)}, which are no settings")
    for name, info in SETTINGS.items():
        if name in SECTIONS:
            parts.append(f"### --- {SECTIONS[name]} --- ###\n")
        if name == QUICK_START_KEY:
            parts.append(_quick_start())
        parts.append(_setting(info))
    return {PATH: "\n".join(parts)}


def _setting(info: SettingInfo) -> str:
    when = ", dynamic" if info.dynamic else ""
    help_ = _comment(info.doc) + _comment(f"Allowed: {info.allowed}{when}.")
    return f"{help_}#{info.name}={Settings().text(info.name)}\n"


def _quick_start() -> str:
    return _comment("Quick start:") + textwrap.indent(QUICK_START, "#     ")


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, COLUMNS_MAX - 2, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, pages))
