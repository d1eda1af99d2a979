"""OpenTelemetry's environment variables for the export of metrics.

Their meaning is OpenTelemetry's. As in Pulsar, nothing is exported without
``OTEL_SDK_DISABLED=false``. The broker does not start with a value that the export cannot honour.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from headgate.base.errors import InputError
from headgate.base.units import MS_PER_S

INTERVAL_MS: Final = 60_000
INTERVAL_MS_MIN: Final = 100
TIMEOUT_MS: Final = 10_000
ENDPOINT: Final = "http://localhost:4318"
METRICS_PATH: Final = "/v1/metrics"

_OFF, _ON = "true", "false"
_OTLP = "otlp"


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """The settings that the exporter is given; it reads the others from the environment."""

    endpoint: str
    """The whole address."""
    interval_ms: int
    timeout_s: float
    """For all tries of one request."""


def export_settings(environment: Mapping[str, str]) -> ExportSettings | None:
    """The export that the environment configures; None without one.

    Raises:
        InputError: a variable has a value that is not allowed; not while the export is off.
    """
    values = {name: text.strip() for name, text in environment.items() if text.strip()}
    disabled = values.get("OTEL_SDK_DISABLED", _OFF).lower()
    if disabled not in (_OFF, _ON):
        raise _refused("OTEL_SDK_DISABLED", values["OTEL_SDK_DISABLED"], f"{_OFF} or {_ON}")
    if disabled == _OFF or values.get("OTEL_METRICS_EXPORTER") == "none":
        return None
    for name, (is_allowed, allowed) in _RULES.items():
        if name in values and not is_allowed(values[name]):
            # Headers hold passwords, addresses may; and errors are logged.
            has_secrets = name.endswith("_HEADERS") or "@" in values[name] or "?" in values[name]
            shown = "" if has_secrets else values[name]
            raise _refused(name, shown, allowed)
    base = values.get("OTEL_EXPORTER_OTLP_ENDPOINT", ENDPOINT).removesuffix("/")
    timeout_ms = _of_metrics(values, "TIMEOUT", str(TIMEOUT_MS))
    return ExportSettings(
        values.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", base + METRICS_PATH),
        int(values.get("OTEL_METRIC_EXPORT_INTERVAL", INTERVAL_MS)),
        int(timeout_ms) / MS_PER_S,
    )


def _of_metrics(values: Mapping[str, str], name: str, default: str) -> str:
    """The value for metrics, or else for all signals."""
    general = values.get(f"OTEL_EXPORTER_OTLP_{name}", default)
    return values.get(f"OTEL_EXPORTER_OTLP_METRICS_{name}", general)


def _refused(name: str, value: str, allowed: str) -> InputError:
    shown = f"={value!r}" if value else ""
    return InputError(f"{name}{shown} is not allowed: {allowed}")


Rule = tuple[Callable[[str], bool], str]
"""A test of a text, and a description of what it allows."""


def _one_of(*allowed: str) -> Rule:
    return lambda text: text.lower() in allowed, " or ".join(allowed)


def _milliseconds(minimum: int) -> Rule:
    return (
        lambda text: bool(re.fullmatch(r"[0-9]{1,9}", text)) and int(text) >= minimum,
        f"an integer from {minimum} to 999999999, in milliseconds",
    )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


_ADDRESS: Final[Rule] = _is_address, "an address such as http://collector:4318"
_PAIRS: Final[Rule] = (
    lambda text: all(re.fullmatch(r"\s*[^=\s]+\s*=.*", part) for part in text.split(",")),
    "name=value,name=value",
)


def _are_headers(text: str) -> bool:
    """Whether they can be sent: the library names the value of one that cannot in its error."""
    values = [unquote(part.partition("=")[2]).strip() for part in text.split(",")]
    return _PAIRS[0](text) and all(value.isascii() and value.isprintable() for value in values)


_HEADERS: Final[Rule] = _are_headers, "name=value,name=value, of visible characters"
_FILE: Final[Rule] = lambda text: Path(text).is_file(), "a file that is there"

_RULES: Final[dict[str, Rule]] = {
    "OTEL_METRICS_EXPORTER": _one_of(_OTLP, "none"),
    "OTEL_METRIC_EXPORT_INTERVAL": _milliseconds(INTERVAL_MS_MIN),
    "OTEL_RESOURCE_ATTRIBUTES": _PAIRS,
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": _one_of("cumulative", "lowmemory"),
} | {
    f"OTEL_EXPORTER_OTLP_{of}{name}": rule
    for of in ("", "METRICS_")
    for name, rule in {
        "PROTOCOL": _one_of("http/protobuf"),
        "ENDPOINT": _ADDRESS,
        "TIMEOUT": _milliseconds(1),
        "HEADERS": _HEADERS,
        "COMPRESSION": _one_of("none", "gzip", "deflate"),
        "CERTIFICATE": _FILE,
        "CLIENT_CERTIFICATE": _FILE,
        "CLIENT_KEY": _FILE,
    }.items()
}
"""By variable that the export uses. The others of OpenTelemetry do not concern metrics."""
