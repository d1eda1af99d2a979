"""Makes the backlog quotas of a namespace of what Pulsar's admin API answers.

A topic without a quota of its own has its namespace's, or else the broker's.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from headgate.agent.limits_reading import broker_settings
from headgate.agent.looks import QuotaLook
from headgate.agent.reading import count, decoded
from headgate.base.units import GIB

_SIZE: Final = "destination_storage"
_AGE: Final = "message_age"


class QuotaAnswers(NamedTuple):
    """The bodies that the admin API answered; None where it refused or failed to."""

    namespace: bytes | None
    """``namespaces/{namespace}/backlogQuotaMap``."""
    settings: bytes | None
    """``brokers/configuration/runtime``."""


class _Quota(Struct, rename="camel"):
    """``limit`` is the name of ``limitSize`` before Pulsar 2.8."""

    limit_size: Any = None
    limit: Any = None
    limit_time: Any = None


_MAP = msgspec.json.Decoder(dict[str, _Quota | None] | None)


def quota_look(namespace: str, at_ns: int, answers: QuotaAnswers) -> QuotaLook:
    """The quotas of the namespace's topics. Where the namespace's own are not known, none is: the
    broker's settings alone do not tell which is in force.

    Raises:
        ReadingError: an answer is not a map of quotas or the settings.
    """
    if answers.namespace is None:
        return QuotaLook(namespace, at_ns, None, None)
    found = decoded(_MAP, answers.namespace or b"null", f"backlog quotas of {namespace}") or {}
    settings = broker_settings(answers.settings) if answers.settings else {}
    size, age = found.get(_SIZE), found.get(_AGE)
    if size is None:
        size_bytes = _broker_bytes(settings)
    else:
        size_bytes = count(size.limit if size.limit_size is None else size.limit_size)
    age_s = _setting(settings, "Second") if age is None else count(age.limit_time)
    return QuotaLook(namespace, at_ns, size_bytes or None, age_s or None)


def _broker_bytes(settings: dict[str, Any]) -> int | None:
    gib = _setting(settings, "GB")
    return gib * GIB if gib else _setting(settings, "Bytes")


def _setting(settings: dict[str, Any], unit: str) -> int | None:
    """A setting of the broker's default quota; settings are texts."""
    text = settings.get(f"backlogQuotaDefaultLimit{unit}")
    try:
        return count(float(text)) if isinstance(text, str) else count(text)
    except (ValueError, OverflowError):
        return None
