from __future__ import annotations

import pickle
import re

import pytest

from pyspark_pulsar.access import NO_ACCESS, Access
from pyspark_pulsar.errors import OptionsError
from pyspark_pulsar.options import (
    COLUMNS,
    OPTION_NAMES,
    OPTIONS,
    Connection,
    OptionInfo,
    SourceOptions,
    full_topic_name,
    parse_options,
)

REQUIRED = {
    "service.url": "pulsar://localhost:6650",
    "admin.url": "http://localhost:8080/",
    "topic": "t",
}
PLAIN = "persistent://public/default/t"


def parse(**more: str) -> SourceOptions:
    return parse_options(REQUIRED | more)


def problems_of(options: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(OptionsError) as caught:
        parse_options(options)
    return caught.value.problems


def test_defaults_are_as_documented() -> None:
    options = parse()
    assert options.connection == Connection(
        "pulsar://localhost:6650", "http://localhost:8080", 30_000, 30_000
    )
    assert options.topics == (PLAIN,)
    assert options.starting_offsets is None
    assert options.ending_offsets is None
    assert options.fail_on_data_loss
    assert options.partitions_min == 1
    assert options.columns == COLUMNS
    assert options.poll_timeout_ms == 120_000
    assert options.publish_time_skew_ms == 600_000
    assert options.receiver_queue_size is None
    assert options.message_bytes_max == 256 * 1024 * 1024


def test_option_names_ignore_case() -> None:
    assert parse_options({key.upper(): value for key, value in REQUIRED.items()}).topics == (PLAIN,)
    assert parse(maxrowspertrigger="7").rows_per_trigger_max == 7


def test_all_problems_are_reported_at_once() -> None:
    found = problems_of({"maxRowPerTrigger": "7", "failOnDataLoss": "perhaps", "topic": "a/b"})
    assert found == (
        "unknown option maxRowPerTrigger; did you mean maxRowsPerTrigger?",
        "option service.url is required",
        "option admin.url is required",
        "option topic='a/b': 'a/b' is not a topic name; give persistent://tenant/namespace/topic",
        "option failOnDataLoss='perhaps': give true or false",
    )


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("service.url", "localhost:6650", "pulsar://host:port"),
        ("service.url", "http://localhost", "pulsar://host:port"),
        ("admin.url", "localhost:8080", "http://host:port"),
        ("startingOffsets", "middle", "give earliest, latest or JSON"),
        ("startingOffsets", "{}", "give earliest, latest or JSON"),
        ("startingOffsets", '{"t": 5}', "must have a text"),
        ("startingOffsets", '{"t": "5"}', "L:E:P:B"),
        ("startingOffsets", f'{{"t": "1:2", "{PLAIN}": "1:3"}}', "named twice"),
        ("startingTime", "yesterday", "whole number"),
        ("startingTime", "-1", "whole number"),
        ("minPartitions", "0", "whole number from 1"),
        ("maxRowsPerTrigger", "0", "whole number from 1"),
        ("maxBytesPerTrigger", "1e6", "whole number from 1"),
        ("pollTimeoutMs", "1", "whole number from 100"),
        ("columns", "value,key", "no column key; there are value, __key"),
        ("columns", "value,value", "named twice"),
        ("columns", "", "no column"),
        ("receiverQueueSize", "0", "whole number from 1"),
        ("maxMessageBytes", "1048575", "whole number from 1048576"),
    ],
)
def test_wrong_values_name_the_option(name: str, value: str, complaint: str) -> None:
    (found,) = problems_of(REQUIRED | {name: value})
    assert found.startswith(f"option {name}={value!r}: ")
    assert complaint in found


SECRET = "eyJhbGciOiJIUzI1NiJ9.e30.c2VjcmV0"
TOKEN = {"authPluginClassName": "token", "authParams": f"token:{SECRET}"}
SECURE = REQUIRED | {"service.url": "pulsar+ssl://h:6651", "admin.url": "https://h:8443"}


def test_a_password_in_a_url_is_not_shown() -> None:
    (found,) = problems_of(REQUIRED | {"admin.url": "http://me:secret@localhost"})
    assert found == ("option admin.url='http://***@localhost': give no user, query or fragment")


def test_credentials_and_trusted_certificates_are_read() -> None:
    assert parse().connection.access == NO_ACCESS
    java = {"authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationToken"}
    for given in (TOKEN, TOKEN | java, {f"pulsar.client.{key}": TOKEN[key] for key in TOKEN}):
        assert parse(**given).connection.access == Access(token=SECRET)
    pair = {"authPluginClassName": "tls", "authParams": "tlsCertFile:/c.pem, tlsKeyFile:/k.pem"}
    assert parse_options(SECURE | pair).connection.access == Access(
        certificate_path="/c.pem", key_path="/k.pem"
    )
    trusting = {"tlsTrustCertsFilePath": "/ca.pem", "tlsHostnameVerificationEnable": "false"}
    assert parse_options(SECURE | trusting).connection.access == Access(
        trust_path="/ca.pem", verify_hostname=False
    )
    insecure = parse_options(SECURE | {"tlsAllowInsecureConnection": "true"}).connection.access
    assert (insecure.allow_insecure, insecure.verify_hostname) == (True, False)


def test_a_certificate_may_go_beside_a_token() -> None:
    pair = {"tlsCertificateFilePath": "/c.pem", "tlsKeyFilePath": "/k.pem"}
    assert parse_options(SECURE | TOKEN | pair).connection.access == Access(
        token=SECRET, certificate_path="/c.pem", key_path="/k.pem"
    )


def test_a_variable_of_the_driver_has_the_secret() -> None:
    variable = {"authPluginClassName": "token", "authParams": "env:T"}
    parsed = parse_options(REQUIRED | variable, {"T": f"{SECRET}\n"})
    assert parsed.connection.access == Access(token=SECRET)
    assert SECRET not in repr(parsed)


def test_one_set_of_credentials_is_for_the_client_and_its_admin_client() -> None:
    both = {f"pulsar.{part}.{key}": TOKEN[key] for key in TOKEN for part in ("client", "admin")}
    assert parse(**both).connection.access == Access(token=SECRET)
    assert problems_of(REQUIRED | both | {"pulsar.admin.authParams": "token:other"}) == (
        "option authParams is given twice",
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"authParams": f"token:{SECRET}"}, "belong together"),
        ({"authPluginClassName": "token"}, "belong together"),
        (TOKEN | {"authPluginClassName": SECRET}, "authPluginClassName must be one of org.apache"),
        (
            TOKEN | {"authParams": SECRET},
            "authParams of a token must be token:TOKEN, file:///PATH",
        ),
        (TOKEN | {"authParams": f"token:{SECRET} x"}, "authParams of a token"),
        (TOKEN | {"authParams": "token:"}, "authParams of a token"),
        (TOKEN | {"authParams": "file:relative"}, "authParams must have a file as file:///PATH"),
        (TOKEN | {"authPluginClassName": "tls"}, "authParams of a certificate must be tlsCertFile"),
        (TOKEN | {"AUTHPARAMS": f"token:{SECRET}x"}, "option authParams is given twice"),
        ({"tlsAllowInsecureConnection": SECRET}, "AllowInsecureConnection: give true or false"),
        (
            {"authPluginClassName": "token", "authParams": "env:NONE"},
            "authParams name the variable NONE, which the driver does not have",
        ),
        ({"tlsKeyFilePath": "/k"}, "tlsCertificateFilePath and tlsKeyFilePath belong together"),
        (
            {"tlsCertificateFilePath": "/c", "tlsKeyFilePath": "/k"}
            | {"authPluginClassName": "tls", "authParams": "tlsCertFile:/c,tlsKeyFile:/k"},
            "option tlsCertificateFilePath: authParams name a certificate, too",
        ),
        ({"tlsTrustCertsFilePath": ""}, "tlsTrustCertsFilePath: give the path of a file"),
        (
            {"tlsAllowInsecureConnection": "true", "tlsHostnameVerificationEnable": "true"},
            "has no effect with tlsAllowInsecureConnection=true",
        ),
    ],
)
def test_problems_of_credentials_do_not_show_them(given: dict[str, str], complaint: str) -> None:
    (found,) = problems_of(SECURE | given)
    assert complaint in found
    assert SECRET not in found


def test_tls_options_without_tls_are_refused() -> None:
    (found,) = problems_of(REQUIRED | {"tlsTrustCertsFilePath": "/ca.pem"})
    assert found.startswith(
        "option tlsTrustCertsFilePath has no effect: no URL begins with pulsar+ssl://"
    )
    (found,) = problems_of(
        REQUIRED | {"authPluginClassName": "tls", "authParams": "tlsCertFile:c,tlsKeyFile:k"}
    )
    assert found.startswith("option authParams has no effect")
    half = REQUIRED | {"admin.url": "https://h:8443", "tlsTrustCertsFilePath": "/ca.pem"}
    assert parse_options(half).connection.access.trust_path == "/ca.pem"


def test_no_text_of_the_options_contains_the_token() -> None:
    options = parse(**TOKEN)
    assert SECRET not in repr(options) + str(options) + repr(options.connection)
    assert pickle.loads(pickle.dumps(options)).connection.access.token == SECRET


def test_exactly_one_of_topic_and_topics_is_required() -> None:
    assert problems_of(REQUIRED | {"topics": "a,b"}) == (
        "give exactly one of the options topic and topics",
    )
    several = {key: value for key, value in REQUIRED.items() if key != "topic"}
    assert problems_of(several) == ("give exactly one of the options topic and topics",)
    assert parse_options(several | {"topics": "a, x/y/b"}).topics == (
        "persistent://public/default/a",
        "persistent://x/y/b",
    )
    assert "named twice" in problems_of(several | {"topics": f"t,{PLAIN}"})[0]


def test_an_offset_and_a_time_exclude_each_other() -> None:
    assert problems_of(REQUIRED | {"startingOffsets": "earliest", "startingTime": "5"}) == (
        "options startingOffsets and startingTime exclude each other",
    )
    assert problems_of(REQUIRED | {"startingTime": "6", "endingTime": "5"}) == (
        "startingTime 6 is after endingTime 5",
    )


def test_offsets_can_be_given_by_topic() -> None:
    options = parse(startingOffsets='{"t": "8:3", "p-partition-1": "latest"}')
    assert options.starting_offsets == {
        PLAIN: "8:3",
        "persistent://public/default/p-partition-1": "latest",
    }


def test_columns_have_the_sources_order() -> None:
    assert parse(columns="__publishTime, value").columns == ("value", "__publishTime")


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(OptionsError, match="maxRowsPerTrigger limits a stream"):
        parse(maxRowsPerTrigger="5").check_batch()
    with pytest.raises(OptionsError, match="startingOffsets=latest would read nothing"):
        parse(startingOffsets="latest").check_batch()
    with pytest.raises(OptionsError, match="endingOffsets=earliest would read nothing"):
        parse(endingOffsets="earliest").check_batch()
    for name, value in (("endingOffsets", "latest"), ("endingTime", "1")):
        with pytest.raises(OptionsError, match=f"option {name} is for batch reads"):
            parse(**{name: value}).check_stream()
    parse(startingTime="1", endingTime="2").check_batch()
    parse(maxRowsPerTrigger="5", maxBytesPerTrigger="5", startingTime="1").check_stream()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a/b",
        "a/b/c/d",
        "non-persistent://a/b/c",
        "http://a/b/c",
        "a//c",
        "persistent://t",
        "ä/b/c",
    ],
)
def test_other_topic_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"not a topic name|not persistent|not allowed"):
        full_topic_name(name)


def test_options_can_be_pickled() -> None:
    options = parse(startingOffsets='{"t": "8:3"}')
    assert pickle.loads(pickle.dumps(options)) == options


def test_the_parser_reads_exactly_the_table_of_options() -> None:
    """Each option is named once, and the stated default is the one in force."""
    assert len(set(OPTION_NAMES)) == len(OPTION_NAMES)
    parsed = parse_options(REQUIRED)
    stated = {option.name: option.default.strip("`") for option in OPTIONS}
    assert stated["failOnDataLoss"] == str(parsed.fail_on_data_loss).lower()
    assert stated["minPartitions"] == str(parsed.partitions_min)
    assert stated["pollTimeoutMs"] == str(parsed.poll_timeout_ms)
    assert stated["adminTimeoutMs"] == str(parsed.connection.admin_timeout_ms)
    assert stated["operationTimeoutMs"] == str(parsed.connection.operation_timeout_ms)
    assert {option.name for option in OPTIONS if option.default == "none"} == {
        name
        for name, value in (
            ("authPluginClassName", parsed.connection.access.token),
            ("authParams", parsed.connection.access.token),
            ("tlsCertificateFilePath", parsed.connection.access.certificate_path),
            ("tlsKeyFilePath", parsed.connection.access.key_path),
            ("startingTime", parsed.starting_time_ms),
            ("endingTime", parsed.ending_time_ms),
            ("maxRowsPerTrigger", parsed.rows_per_trigger_max),
            ("maxBytesPerTrigger", parsed.bytes_per_trigger_max),
        )
        if value is None
    }


@pytest.mark.parametrize(
    "option", [option for option in OPTIONS if re.match(r"\d+ to \d+", option.allowed)]
)
def test_stated_bounds_are_enforced(option: OptionInfo) -> None:
    low, high = (int(word) for word in re.findall(r"\d+", option.allowed)[:2])
    for good in (low, high):
        parse_options(REQUIRED | {option.name: str(good)})
    for bad in (low - 1, high + 1):
        with pytest.raises(OptionsError, match=f"from {low} to {high}"):
            parse_options(REQUIRED | {option.name: str(bad)})


def test_a_clock_skew_requires_a_search_by_time() -> None:
    with pytest.raises(OptionsError, match="no effect without startingTime or endingTime"):
        parse(publishTimeSkewMs="5").check_batch()
    with pytest.raises(OptionsError, match=r"no effect without startingTime$"):
        parse(publishTimeSkewMs="5").check_stream()
    parse(publishTimeSkewMs="5", startingTime="5").check_stream()
    for name in ("startingTime", "endingTime"):
        options = parse(publishTimeSkewMs="0", **{name: "5"})
        options.check_batch()
        assert options.publish_time_skew_ms == 0
