"""Settings from broker.conf and the command line, and errors that name key and value."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.app.config_file import (
    CONFIG_BYTES_MAX,
    check_settings,
    load_settings,
    parse_overrides,
    read_config,
    with_suggestion,
)
from headgate.base.errors import InputError
from headgate.base.properties import Assignment, parse_properties
from headgate.policy.settings import SETTINGS, Settings


def test_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("clusterName=east\n")
    assert read_config(str(path)) == [Assignment("clusterName", "east", "broker.conf:1")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"a=\xff", r"not UTF-8 text \(byte 2\)"),
        (b"#" * (CONFIG_BYTES_MAX + 1), f"too long: {CONFIG_BYTES_MAX} bytes"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes | None, message: str) -> None:
    path = tmp_path / "broker.conf"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_config(str(path))


@pytest.mark.parametrize(
    ("line", "holds_secret"),
    [
        ("tokenSecretKey=data:;base64,QUJD", True),
        ("basicAuthConf=YW5uOng=", True),
        ("tokenSecretKey=file:///etc/headgate/secret.key", False),
        ("tokenSecretKey=/etc/hostname", False),  # a file that is there
        ("tokenSecretKey=", False),
        ("tokenPublicKey=data:;base64,QUJD", False),
    ],
)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604])
def test_a_file_with_a_secret_that_others_may_read_is_refused(
    tmp_path: Path, line: str, holds_secret: bool, mode: int
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"clusterName=east\n{line}\n")
    path.chmod(mode)
    if not holds_secret or mode == 0o600:
        assert len(read_config(str(path))) == 2
        return
    name, value = line.split("=", 1)
    with pytest.raises(InputError, match=rf"has the secret of {name}, and .* {mode:04o}") as caught:
        read_config(str(path))
    assert value not in str(caught.value)


@pytest.mark.parametrize(("line", "is_trusted"), [("True", True), ("false", False), ("", False)])
def test_a_file_that_says_who_is_trusted_is_not_for_everybody_to_write(
    tmp_path: Path, line: str, is_trusted: bool
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"authenticationEnabled={line}\nsuperUserRoles=admin\n")
    path.chmod(0o664)  # as a umask of 002 leaves it
    assert len(read_config(str(path))) == 2
    path.chmod(0o666)
    if not is_trusted:
        assert len(read_config(str(path))) == 2
        return
    with pytest.raises(InputError, match=r"may be written by everybody .* 0666\): chmod 644"):
        read_config(str(path))


def test_defaults_hold_where_nothing_is_said() -> None:
    loaded = load_settings()
    assert loaded.settings == Settings()
    assert loaded.unsupported == ()
    assert check_settings(loaded.settings) == []


def test_the_command_line_overrides_the_file_and_its_last_line_counts() -> None:
    file = parse_properties(
        "webServicePort=1\nwebServicePort=8081\nbrokerServicePort=7000\nclusterName=\n", "f"
    )
    loaded = load_settings(file, parse_overrides(["brokerServicePort = 7001"]))
    assert loaded.settings.webServicePort == 8081
    assert loaded.settings.brokerServicePort == 7001
    assert loaded.settings.clusterName == "standalone"  # an empty value is not set


def test_a_replaced_value_is_not_checked() -> None:
    file = parse_properties("webServicePort=many\nwebServicePort=8081", "f")
    assert load_settings(file).settings.webServicePort == 8081


def test_a_slip_in_a_key_is_named_with_what_may_be_meant() -> None:
    typo = "adaptivePublisherThrotlingObserveOnly"
    meant = "adaptivePublisherThrottlingObserveOnly"
    assert with_suggestion(typo) == f"{typo} (did you mean {meant}?)"
    # A key that Pulsar has and Headgate does not is no slip.
    for other in ("dispatchThrottlingRatePerReplicatorInMsg", "webServiceTlsProvider"):
        assert with_suggestion(other) == other


def test_unsupported_keys_are_kept_apart() -> None:
    file = parse_properties(
        "zookeeperServers=\nwebServicePort=1\nbookkeeperX=2\nbookkeeperX=3", "f"
    )
    assert load_settings(file).unsupported == ("zookeeperServers", "bookkeeperX")


def test_every_bad_value_is_named_with_what_is_allowed() -> None:
    file = parse_properties("webServicePort=99999\n\nallowAutoTopicCreation=yes", "broker.conf")
    with pytest.raises(InputError) as caught:
        load_settings(file, parse_overrides(["allowAutoTopicCreationType=round"]))
    first, second, third = str(caught.value).splitlines()
    assert first.startswith(
        "broker.conf:1: webServicePort='99999' is not allowed; use an integer from"
    )
    assert second == "broker.conf:3: allowAutoTopicCreation='yes' is not allowed; use true or false"
    assert third.startswith("--set: allowAutoTopicCreationType='round' is not allowed; use ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("webServicePort", "--set webServicePort: key=value is allowed"),
        ("=1", "--set =1: key=value is allowed"),
        ("webServicePrt=1", "no setting 'webServicePrt'; did you mean webServicePort?"),
        ("colour=red", "there is no setting 'colour'$"),
    ],
)
def test_bad_overrides(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        parse_overrides([text])


def test_an_override_may_not_be_empty_where_a_number_is_needed() -> None:
    with pytest.raises(InputError, match="--set: maxMessageSize='' is not allowed"):
        load_settings((), parse_overrides(["maxMessageSize="]))


def test_an_empty_port_is_none_as_in_pulsar() -> None:
    """A broker.conf of a cluster with TLS alone must not open the plain ports."""
    file = parse_properties(
        "brokerServicePort=\nbrokerServicePortTls=6651\nwebServicePortTls=\n", "f"
    )
    for overrides in ((), parse_overrides(["brokerServicePort="])):
        settings = load_settings(file, overrides).settings
        assert (settings.brokerServicePort, settings.brokerServicePortTls) == (-1, 6651)
        assert (settings.webServicePort, settings.webServicePortTls) == (8080, -1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["brokerServicePort="], "neither brokerServicePort nor brokerServicePortTls is a port"),
        (["webServicePort=-1"], "neither webServicePort nor webServicePortTls is a port"),
        (
            ["brokerServicePortTls=8080"],
            "brokerServicePortTls and webServicePort are both 8080: different ports are allowed",
        ),
        (
            ["brokerServicePort=1", "webServicePort=1", "webServicePortTls=1"],
            "brokerServicePort and webServicePort and webServicePortTls are all 1",
        ),
        (["tlsAllowInsecureConnection=true"], "tlsAllowInsecureConnection=true is not allowed: a"),
        (["tlsEnabled=true"], "tlsEnabled='true' is not allowed: set brokerServicePortTls and"),
        (["tlsEnabledWithKeyStore=true"], "is not allowed: key stores of Java are not supported"),
    ],
)
def test_ports_and_keys_of_tls_that_cannot_be(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_settings((), parse_overrides(words))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("clusterName", "a b", "clusterName='a b' is not allowed"),
        ("headgateTelemetryTopic", "persistent://a/b", "headgateTelemetryTopic: "),
        ("headgateTelemetryTopic", "non-persistent://a/b/c", "a persistent topic"),
        ("headgateTelemetryTopic", "persistent://a/b/c-partition-1", "that is no partition"),
        ("headgateTelemetryIntervalMs", "7000", "an integer that divides 60000"),
        ("webServicePort", "6650", "both 6650"),
    ],
)
def test_values_that_do_not_go_together(key: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_settings([Assignment(key, value, "f:1")])


def test_watermarks_are_compared_when_all_is_read() -> None:
    keys = {what: f"adaptivePublisherThrottling{what}" for what in ("Memory", "Backlog")}
    lines = [f"{key}LowWatermarkPct=0.95" for key in keys.values()]
    with pytest.raises(InputError) as caught:
        load_settings(parse_properties("\n".join(lines), "broker.conf"))
    assert str(caught.value).splitlines() == [
        f"{keys[what]}LowWatermarkPct='0.95' is not allowed; use a number above 0 and below "
        f"{keys[what]}HighWatermarkPct ({high})"
        for what, high in (("Memory", "0.85"), ("Backlog", "0.9"))
    ]
    overrides = parse_overrides([f"{key}HighWatermarkPct=0.99" for key in keys.values()])
    load_settings(parse_properties("\n".join(lines), "broker.conf"), overrides)


def test_every_default_may_be_written() -> None:
    settings = Settings()
    written = [Assignment(key, settings.text(key), "f:1") for key in SETTINGS]
    assert load_settings(written).settings == settings


def test_authorization_needs_authentication() -> None:
    with pytest.raises(InputError, match="is not allowed without authenticationEnabled=true"):
        load_settings(overrides=parse_overrides(["authorizationEnabled=true"]))
    load_settings(overrides=parse_overrides(["authorizationEnabled=false", "superUserRoles=a"]))
