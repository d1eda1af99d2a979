"""OpenTelemetry's variables, which switch the export on or stop the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.app.export_settings import ExportSettings, export_settings
from headgate.base.errors import InputError

ON = {"OTEL_SDK_DISABLED": "false"}
DEFAULTS = ExportSettings("http://localhost:4318/v1/metrics", 60_000, 10.0)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SDK_DISABLED": "true", "OTEL_METRIC_EXPORT_INTERVAL": "often"},
        {"OTEL_SDK_DISABLED": " TRUE "},
        {"OTEL_SDK_DISABLED": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"},
        ON | {"OTEL_METRICS_EXPORTER": "none"},
    ],
)
def test_it_is_off_unless_switched_on(environment: dict[str, str]) -> None:
    assert export_settings(environment) is None


def test_defaults() -> None:
    assert export_settings(ON) == export_settings({"OTEL_SDK_DISABLED": "False"}) == DEFAULTS
    assert export_settings(ON | {"OTEL_METRIC_EXPORT_INTERVAL": " "}) == DEFAULTS


def test_where_to_and_how_often() -> None:
    general = ON | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector/otel/",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRICS_EXPORTER": "otlp",
    }
    assert export_settings(general) == ExportSettings(
        "https://collector/otel/v1/metrics", 1_000, 2.5
    )
    of_metrics = general | {
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://metrics:9/all",
        "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "100",
    }
    assert export_settings(of_metrics) == ExportSettings("http://metrics:9/all", 1_000, 0.1)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("OTEL_METRICS_EXPORTER", "prometheus", "otlp or none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json", "http/protobuf"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "often", "an integer from 100 to 999999999"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "99", "an integer from 100 to 999999999"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1e4", "an integer from 100 to 999999999"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "an integer from 1 to 999999999"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "such as http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://", "such as http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:99999", "such as http"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://[collector", "such as http"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "none or gzip or deflate"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "cumulative or lowmemory"),
        ("OTEL_RESOURCE_ATTRIBUTES", "zone=a,b", "name=value,name=value"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem", "a file that is there"),
    ],
)
def test_a_value_that_cannot_be_followed_is_refused(name: str, value: str, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        export_settings(ON | {name: value})
    assert str(caught.value).startswith(f"{name}={value!r} is not allowed: ")
    assert allowed in str(caught.value)


def test_a_switch_that_is_neither_on_nor_off() -> None:
    with pytest.raises(InputError, match="OTEL_SDK_DISABLED='no' is not allowed: true or false"):
        export_settings({"OTEL_SDK_DISABLED": "no"})


def test_headers_are_checked_and_not_shown() -> None:
    good = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20c2VjcmV0, tenant=a"}
    assert export_settings(ON | good) == DEFAULTS
    with pytest.raises(InputError) as caught:
        export_settings(ON | {"OTEL_EXPORTER_OTLP_METRICS_HEADERS": "secret"})
    assert str(caught.value) == (
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS is not allowed: name=value,name=value, "
        "of visible characters"
    )


@pytest.mark.parametrize("value", ["Bearer%20secret%0Ax", "s%E2%82%ACcret", "secret%00"])
def test_headers_that_cannot_be_sent_are_refused(value: str) -> None:
    """The library's error has the value, which is a secret, and went into the log."""
    with pytest.raises(InputError) as refused:
        export_settings(ON | {"OTEL_EXPORTER_OTLP_HEADERS": f"tenant=a,authorization={value}"})
    assert str(refused.value) == (
        "OTEL_EXPORTER_OTLP_HEADERS is not allowed: name=value,name=value, of visible characters"
    )


def test_the_end_of_a_line_behind_a_header_is_stripped_as_the_library_does() -> None:
    given = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret%0A"}
    assert export_settings(ON | given) == DEFAULTS


def test_files_and_attributes_that_are_good(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.write_text("a certificate")
    assert (
        export_settings(
            ON
            | {
                "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate),
                "OTEL_RESOURCE_ATTRIBUTES": "zone=a,empty=,url=http://x?a=b",
                "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
                "OTEL_TRACES_SAMPLER": "whatever says nothing about metrics",
            }
        )
        == DEFAULTS
    )


def test_an_address_with_a_password_is_not_shown() -> None:
    with pytest.raises(InputError) as refused:
        export_settings(
            {
                "OTEL_SDK_DISABLED": "false",
                "OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://user:secret@collector:4318",
            }
        )
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in str(refused.value)
    assert "secret" not in str(refused.value)
