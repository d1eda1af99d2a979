"""Clusters, the broker, dynamic settings."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

B = "/admin/v2/brokers"
NAME = "dispatchThrottlingRatePerTopicInMsg"


def test_who_this_is(api: Ask) -> None:
    assert api("GET", "/admin/v2/clusters").json() == ["standalone"]
    assert api("GET", B).json() == ["127.0.0.1:8080"]
    assert api("GET", f"{B}/standalone").json() == ["127.0.0.1:8080"]
    assert api("GET", f"{B}/other").reason == "Cluster does not exist"
    assert api("GET", f"{B}/leaderBroker").json() == {
        "brokerId": "127.0.0.1:8080",
        "serviceUrl": "http://127.0.0.1:8080",
    }
    assert api("GET", f"{B}/version").body == b"0.0.0"


def test_the_identity_is_that_of_the_data_directory(api: Ask, broker: FakeFacade) -> None:
    row = msgspec.structs.replace(broker.catalog.identity, data_id="ab" * 16)
    broker.catalog.apply(broker.catalog.plan_identity(row))
    assert api("GET", "/admin/v2/headgate/identity").json() == {
        "cluster": "standalone",
        "dataId": "ab" * 16,
    }


def test_the_broker_is_shut_down(api: Ask, broker: FakeFacade) -> None:
    path = f"{B}/shutdown?maxConcurrentUnloadPerSec=0&forcedTerminateTopic=true"
    assert api("POST", path).status == 204
    assert broker.shut_down_count == 1


def test_health(api: Ask, broker: FakeFacade) -> None:
    assert api("GET", f"{B}/health?topicVersion=V2").body == b"ok"
    assert api("GET", f"{B}/ready").body == b"ok"
    broker.ailment = "the disk is slow"
    reply = api("GET", f"{B}/health")
    assert (reply.status, reply.body) == (200, b"ok, but the disk is slow")
    broker.unready = "the commit lane has not answered for 12 s"
    reply = api("GET", f"{B}/ready")
    assert (reply.status, reply.reason) == (503, broker.unready)
    broker.ready = False
    assert api("GET", f"{B}/ready").status == 500
    assert (api("GET", f"{B}/health").status, api("GET", f"{B}/health").reason) == (
        503, "the broker is starting",
    )  # fmt: skip


def test_a_setting_is_changed_shown_and_reset(api: Ask) -> None:
    assert api("POST", f"{B}/configuration/{NAME}/500").status == 200
    assert api("GET", f"{B}/configuration/values").json() == {NAME: "500"}
    assert api("GET", f"{B}/configuration/runtime").json()[NAME] == "500"
    assert api("DELETE", f"{B}/configuration/{NAME}").status == 200
    assert api("GET", f"{B}/configuration/values").json() == {}
    assert NAME in api("GET", f"{B}/configuration/").json()


def test_a_value_that_is_not_allowed_changes_nothing(api: Ask) -> None:
    answer = api("POST", f"{B}/configuration/{NAME}/many")
    assert (answer.status, answer.reason) == (412, f"{NAME}=many: an integer is allowed")
    assert api("GET", f"{B}/configuration/values").json() == {}


def test_a_start_up_value_that_is_not_allowed_any_more_is_not_gone_back_to(
    api: Ask, broker: FakeFacade
) -> None:
    api("POST", f"{B}/configuration/{NAME}/500")
    broker.kept_settings.add(NAME)
    answer = api("DELETE", f"{B}/configuration/{NAME}")
    assert (answer.status, answer.reason) == (412, f"{NAME} stays as it is")
    assert api("GET", f"{B}/configuration/values").json() == {NAME: "500"}


def test_an_encoded_slash_in_a_value_survives(api: Ask) -> None:
    api("POST", f"{B}/configuration/allowAutoTopicCreation/a%2Fb")
    assert api("GET", f"{B}/configuration/values").json() == {"allowAutoTopicCreation": "a/b"}


def test_other_settings_are_not_dynamic(api: Ask) -> None:
    assert api("POST", f"{B}/configuration/clusterName/1").reason == (
        "Can't update non-dynamic configuration: clusterName is read when the broker starts, and "
        "only then"
    )
    answer = api("DELETE", f"{B}/configuration/clusterName")
    assert answer.status == 412
    assert answer.reason.startswith("Can't delete non-dynamic configuration: clusterName is read")
    assert api("POST", f"{B}/configuration/allowAutoTopicCreatoin/1").reason == (
        "Can't update non-dynamic configuration: there is no setting 'allowAutoTopicCreatoin'; "
        "did you mean allowAutoTopicCreation?"
    )


def test_the_one_cluster_is_there(api: Ask) -> None:
    answer = api("PUT", "/admin/v2/clusters/standalone", {"serviceUrl": "http://127.0.0.1:8080"})
    assert (answer.status, answer.reason) == (409, "Cluster already exists")
    answer = api("PUT", "/admin/v2/clusters/other", {})
    assert answer.status == 405
    assert "'other' cannot be created" in answer.reason


def test_quotas_are_verified_before_the_answer(api: Ask, broker: FakeFacade) -> None:
    answer = api("GET", f"{B}/backlog-quota-check")
    assert (answer.status, answer.body, broker.quota_checks) == (204, b"", 1)
    assert api("POST", f"{B}/backlog-quota-check").status == 405
    assert broker.quota_checks == 1


def test_a_cluster_of_tls_alone_has_no_plain_addresses(api: Ask, broker: FakeFacade) -> None:
    broker.info = replace(
        broker.info,
        broker_url="",
        web_url="",
        broker_url_tls="pulsar+ssl://b:6651",
        web_url_tls="https://b:8443",
    )
    answer = api("GET", "/admin/v2/clusters/standalone").json()
    assert answer["serviceUrlTls"] == "https://b:8443"
    assert answer["brokerServiceUrlTls"] == "pulsar+ssl://b:6651"
    assert not {"serviceUrl", "brokerServiceUrl"} & answer.keys()
    leader = api("GET", "/admin/v2/brokers/leaderBroker").json()
    assert leader["serviceUrl"] == "https://b:8443"
