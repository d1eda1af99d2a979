"""Tokens, certificates and TLS on both connections to a broker, behind a proxy."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.pipeline import preflight
from headgate.pipeline.access_options import AccessOptions
from headgate.pipeline.options import SourceOptions
from pyspark_pulsar.errors import AccessError
from pyspark_pulsar.source import DefaultSource
from tests.spark.conftest import Broker, Cluster
from tests.spark.front import Certificates, Front, front_of, make_certificates

GOOD, NEXT = "good.token.0123456789", "next.token.0123456789"
SENT = [b"m%d" % number for number in range(20)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    name = cluster.new_topic()
    cluster.publish(name, SENT, batch=5)
    return name


def options_of(front: Front, topic: str, **more: str) -> dict[str, str]:
    """Required options, with little patience."""
    urls = {"service.url": front.service_url, "admin.url": front.admin_url, "topic": topic}
    waits = {"adminTimeoutMs": "5000", "operationTimeoutMs": "3000", "pollTimeoutMs": "10000"}
    return urls | waits | more


def token(text: str) -> dict[str, str]:
    return {"authPluginClassName": "token", "authParams": f"token:{text}"}


def read(options: dict[str, str]) -> list[bytes]:
    """All values, by the classes that Spark calls, in this process."""
    source = DefaultSource(options)
    reader = source.reader(source.schema())
    return [
        value
        for task in reader.partitions()
        for batch in reader.read(task)
        for value in batch["value"].to_pylist()
    ]


def test_a_token_in_tls_through_spark(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    certificates: Certificates,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Read by a batch and a stream; the token is in no plan, checkpoint or output."""
    with front_of(
        broker.service_url, broker.admin_url, tokens={GOOD}, certificates=certificates
    ) as front:
        options = options_of(front, topic, tlsTrustCertsFilePath=certificates.authority)
        frame = spark.read.format("pulsar").options(**options, **token(GOOD)).load()
        assert [bytes(row.value) for row in frame.select("value").collect()] == SENT
        assert set(front.shown) == {GOOD}
        frame.explain(mode="extended")
        stream = (
            spark.readStream.format("pulsar")
            .options(**options, **token(GOOD), startingOffsets="earliest")
            .load()
        )
        query = (
            stream.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        query.explain(extended=True)
        progress = query.recentProgress
        assert sum(each.numInputRows for each in progress) == len(SENT)
        with pytest.raises(PySparkException, match="answered 401: a token is required") as caught:
            spark.read.format("pulsar").options(**options, **token(NEXT)).load().collect()
    told = capfd.readouterr()
    checkpoint = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert checkpoint
    texts = [told.out, told.err, str(caught.value), *(str(each.json) for each in progress)]
    assert not any(secret in text for text in texts for secret in (GOOD, NEXT))
    assert not any(GOOD.encode() in each for each in checkpoint)


def test_a_variable_of_the_driver_reaches_the_workers(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """Spark's Java runs already, so it is a variable that every process has."""
    secret = os.environ["HOME"]
    with front_of(broker.service_url, broker.admin_url, tokens={secret}) as front:
        params = {"authPluginClassName": "token", "authParams": "env:HOME"}
        frame = spark.read.format("pulsar").options(**options_of(front, topic, **params)).load()
        assert [bytes(row.value) for row in frame.select("value").collect()] == SENT
        assert set(front.shown) == {secret}


def test_a_token_file_is_read_again(broker: Broker, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    params = {"authPluginClassName": "token", "authParams": path.as_uri()}
    with front_of(broker.service_url, broker.admin_url, tokens={GOOD}) as front:
        path.write_text(f"{GOOD}\n")
        assert read(options_of(front, topic, **params)) == SENT
        front.tokens = {NEXT}
        source = DefaultSource(options_of(front, topic, **params))
        reader = source.streamReader(source.schema())
        with pytest.raises(AccessError, match=f"answered 401.*check the token in {path}"):
            reader.initialOffset()
        path.write_text(NEXT)
        assert reader.initialOffset()["t"].keys() == {topic}


@pytest.mark.parametrize("more", [token("wrong.token"), {}])
def test_a_wrong_token_or_none_ends_at_once(
    broker: Broker, topic: str, more: dict[str, str]
) -> None:
    """At the admin API, and at the binary port by itself."""
    words = "check the token in authParams" if more else "set the options"
    with front_of(broker.service_url, broker.admin_url, tokens={GOOD}) as front:
        options = options_of(front, topic, **more)

        for asked in (options, options | {"admin.url": broker.admin_url}):
            with pytest.raises(AccessError, match=words) as caught:
                read(asked)
            assert "wrong.token" not in str(caught.value)
        assert (front.requests, len(front.shown)) == (1, 1), "neither was tried again"


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_an_authority_that_is_not_trusted(
    broker: Broker, topic: str, certificates: Certificates
) -> None:
    with front_of(broker.service_url, broker.admin_url, certificates=certificates) as front:
        options = options_of(front, topic)
        untrusted = r"certificate is not trusted.*tlsTrustCerts"
        with pytest.raises(AccessError, match=untrusted):
            read(options)
        with pytest.raises(AccessError, match=untrusted):
            read(options | {"admin.url": broker.admin_url})
        assert read(options | {"tlsAllowInsecureConnection": "true"}) == SENT
        by_name = {
            name: url.replace("127.0.0.1", "localhost")
            for name, url in options.items()
            if name.endswith(".url")
        }
        trusting = options | by_name | {"tlsTrustCertsFilePath": certificates.authority}
        with pytest.raises(AccessError, match="localhost"):
            read(trusting)
        assert read(trusting | {"tlsHostnameVerificationEnable": "false"}) == SENT


def test_a_client_certificate(broker: Broker, topic: str, certificates: Certificates) -> None:
    with front_of(
        broker.service_url, broker.admin_url, certificates=certificates, wants_certificate=True
    ) as front:
        trusting = options_of(front, topic, tlsTrustCertsFilePath=certificates.authority)
        with pytest.raises(AccessError, match="it requires a client certificate"):
            read(trusting)
        pair = f"tlsCertFile:{certificates.client},tlsKeyFile:{certificates.client_key}"
        assert read(trusting | {"authPluginClassName": "tls", "authParams": pair}) == SENT


def test_plain_http_instead_of_tls(broker: Broker, topic: str) -> None:
    with front_of(broker.service_url, broker.admin_url) as front:
        url = front.admin_url.replace("http:", "https:")
        with pytest.raises(AccessError, match="does not speak TLS"):
            read(options_of(front, topic) | {"admin.url": url})


def test_the_pipeline_sends_the_token_and_reports_refusals(
    broker: Broker, topic: str, certificates: Certificates, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("wrong.token")
    with front_of(
        broker.service_url, broker.admin_url, tokens={GOOD}, certificates=certificates
    ) as front:
        urls = (front.service_url,), (front.admin_url,)
        trust = {"trust_path": certificates.authority}
        good = AccessOptions("token", f"token:{GOOD}", **trust)
        by_file = AccessOptions("token", path.as_uri(), **trust)
        for access, why in (
            (by_file, r"answered 401.*\(--config, --profile or --auth-plugin"),
            (replace(good, auth_params="token:two words"), r"auth-params of a token must be"),
            (replace(good, trust_path=""), r"certificate is not trusted.*--tls-trust-cert-path"),
            (replace(good, trust_path="/none.pem"), r"/none.pem cannot be used"),
        ):
            with pytest.raises(InputError, match=why) as caught:
                preflight.check_brokers(SourceOptions("t", *urls, topic, access=access))
            assert "wrong.token" not in str(caught.value)
        path.write_text(GOOD)
        source = SourceOptions("t", *urls, topic, access=by_file)
        preflight.check_brokers(source)
        plain = front.service_url.replace("+ssl", "")
        with pytest.raises(InputError, match="--broker-url"):
            preflight.check_brokers(SourceOptions("t", (plain,), urls[1], topic, access=good))
