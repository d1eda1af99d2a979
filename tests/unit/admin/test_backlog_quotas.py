"""Backlog quotas of namespaces and topics: set, shown, compared with retention, refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.admin.app import AdminApp
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import Retention
from tests.unit.admin.client import ask, ask_async, encode
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

NS = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"
T = f"{P}/t"
SIZE, AGE = "destination_storage", "message_age"
LEVELS = {"namespace": NS, "topic": T}
SUBJECTS = {NS: "namespace[public/default]", T: "topic[persistent://public/default/t]"}
MIB = 1 << 20

TOO_LARGE = (
    "Backlog Quota exceeds configured retention quota for {}. "
    "Please increase retention quota and retry ("
)
TOO_SMALL = "Retention Quota must exceed configured backlog quota for {}."


def quota(
    limit_size: int = -1, limit_time: int = -1, policy: str = "producer_request_hold"
) -> dict[str, Any]:
    """As it is shown."""
    return {"limit": limit_size, "limitSize": limit_size, "limitTime": limit_time, "policy": policy}


def of_type(path: str, kind: str) -> str:
    return f"{path}/backlogQuota?backlogQuotaType={kind}"


@pytest.fixture(params=LEVELS)
def path(request: pytest.FixtureRequest, api: Ask) -> str:
    """Where quotas are set; the topic exists."""
    assert api("PUT", T).status == 204
    return LEVELS[request.param]


def retain(api: Ask, path: str, time_min: int, size_mb: int) -> Any:
    body = {"retentionTimeInMinutes": time_min, "retentionSizeInMB": size_mb}
    return api("POST", f"{path}/retention", body)


def quotas(api: Ask, path: str) -> Any:
    """What is set."""
    return api("GET", f"{path}/backlogQuotaMap").json()


# What is set and shown ------------------------------------------------------------------------


def test_set_get_remove(api: Ask, path: str) -> None:
    unset = api("GET", f"{path}/backlogQuotaMap")
    assert (unset.status, unset.content_type, unset.body) == (200, "application/json", b"{}")
    assert api("DELETE", f"{path}/backlogQuota").status == 204
    age, size = quota(limit_time=60, policy="producer_exception"), quota(5_000)
    assert api("POST", of_type(path, AGE), age).status == 204
    assert api("POST", f"{path}/backlogQuota", size).status == 204
    shown = quotas(api, path)
    assert list(shown.items()) == [(SIZE, size), (AGE, age)]
    assert list(shown[SIZE]) == ["limit", "limitSize", "limitTime", "policy"]
    evict = quota(7, policy="consumer_backlog_eviction")
    assert api("POST", of_type(path, SIZE), evict).status == 204
    assert quotas(api, path) == {SIZE: evict, AGE: age}
    assert api("DELETE", of_type(path, AGE)).status == 204
    assert quotas(api, path) == {SIZE: evict}
    assert api("DELETE", f"{path}/backlogQuota").status == 204
    assert quotas(api, path) == {}


def test_a_set_without_a_body_removes(api: Ask, path: str) -> None:
    for empty in (None, b'""', b"null"):
        api("POST", of_type(path, AGE), quota(limit_time=60))
        api("POST", of_type(path, SIZE), quota(5))
        assert api("POST", of_type(path, AGE), empty).status == 204
        assert quotas(api, path) == {SIZE: quota(5)}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({}, quota()),
        ({"limitTime": 60}, quota(limit_time=60)),
        ({"limitSize": 5}, quota(5)),
        ({"limit": 5}, quota(5)),
        ({"limitSize": 0}, quota(0)),
        ({"limitTime": 0}, quota(limit_time=0)),
        ({"limitSize": -7, "limitTime": -9}, quota(-7, -9)),
        ({"limitSize": (1 << 63) - 1, "limitTime": (1 << 31) - 1},
         quota((1 << 63) - 1, (1 << 31) - 1)),
        ({"limitSize": -(1 << 63), "limitTime": -(1 << 31)}, quota(-(1 << 63), -(1 << 31))),
        ({"limitSize": "12", "colour": "red"}, quota(12)),
        ({"limitSize": 5, "limitTime": 6}, quota(5, 6)),
    ],
)  # fmt: skip
def test_what_is_left_out_is_no_limit_and_zero_is_zero(
    api: Ask, path: str, body: dict[str, Any], shown: dict[str, Any]
) -> None:
    body = body | {"policy": "producer_request_hold"}
    assert api("POST", f"{path}/backlogQuota", body).status == 204
    assert quotas(api, path) == {SIZE: shown}


def test_quotas_and_their_removal_survive_a_restart(
    api: Ask, broker: FakeFacade, path: str
) -> None:
    api("POST", of_type(path, AGE), quota(limit_time=60))
    api("POST", of_type(path, SIZE), quota(0, policy="producer_exception"))
    api("DELETE", of_type(path, AGE))
    broker.catalog = Catalog("standalone", broker.store.crash_clone().load())
    assert quotas(api, path) == {SIZE: quota(0, policy="producer_exception")}


def test_the_whole_object_of_a_namespace_shows_them(api: Ask) -> None:
    assert api("GET", NS).json()["backlog_quota_map"] == {}
    api("POST", of_type(NS, AGE), quota(limit_time=60))
    assert api("GET", NS).json()["backlog_quota_map"] == {AGE: quota(limit_time=60)}


def test_applied_shows_each_type_from_where_it_is_set(api: Ask) -> None:
    api("PUT", T)
    applied = f"{T}/backlogQuotaMap?applied=true"
    assert api("GET", applied).json() == {SIZE: quota(), AGE: quota()}
    above = quota(limit_time=60, policy="producer_exception")
    api("POST", of_type(NS, AGE), above)
    api("POST", of_type(NS, SIZE), quota(9))
    assert api("GET", applied).json() == {SIZE: quota(9), AGE: above}
    # The other type's limit is kept as it was given, but is none that acts.
    api("POST", f"{T}/backlogQuota", quota(5, 6, "consumer_backlog_eviction"))
    own = quota(5, policy="consumer_backlog_eviction")
    assert api("GET", applied).json() == {SIZE: own, AGE: above}
    assert quotas(api, T) == {SIZE: quota(5, 6, "consumer_backlog_eviction")}
    api("POST", f"{T}/backlogQuota", quota(-1))
    assert api("GET", applied).json() == {SIZE: quota(), AGE: above}


def test_partitions_share_their_topics(api: Ask) -> None:
    api("PUT", f"{P}/pt/partitions", 2)
    assert api("POST", f"{P}/pt/backlogQuota?isGlobal=true", quota(5)).status == 204
    assert quotas(api, f"{P}/pt") == {SIZE: quota(5)}
    for method, segment in (
        ("GET", "backlogQuotaMap"),
        ("POST", "backlogQuota"),
        ("DELETE", "backlogQuota"),
    ):
        answer = api(method, f"{P}/pt-partition-0/{segment}", quota(6))
        assert (answer.status, answer.reason) == (
            412, "Not allowed to set/get topic policy for a partition",
        )  # fmt: skip
    assert quotas(api, f"{P}/pt") == {SIZE: quota(5)}


# Which of the two names counts ----------------------------------------------------------------

_fields = st.tuples(st.sampled_from(["limit", "limitSize"]), st.integers(-(1 << 63), (1 << 63) - 1))
_others = st.sampled_from([("policy", "producer_exception"), ("colour", {"limit": 1})])


@given(st.lists(_fields | _others, max_size=6), st.booleans())
def test_the_last_of_the_two_names_counts(fields: list[tuple[str, Any]], is_creation: bool) -> None:
    """Also of names that are there more than once: as Jackson, which assigns one by one."""
    facade = FakeFacade()
    app = AdminApp(facade, facade.clock)
    fields = [("policy", "producer_exception"), *fields]
    text = "{" + ",".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in fields) + "}"
    path = "/admin/v2/namespaces/public/ns"
    if is_creation:
        earlier = '{"message_age": {"limit": 1}}'
        body = f'{{"backlog_quota_map": {earlier}, "backlog_quota_map": {{"{SIZE}": {text}}}}}'
        assert ask(app, "PUT", path, body.encode()).status == 204
    else:
        assert ask(app, "PUT", path).status == 204
        assert ask(app, "POST", f"{path}/backlogQuota", text.encode()).status == 204
    sizes = [value for name, value in fields if name.startswith("limit")]
    found = ask(app, "GET", f"{path}/backlogQuotaMap").json()
    assert found == {SIZE: quota(sizes[-1] if sizes else -1, policy="producer_exception")}


# What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SIZE, AGE])
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"policy": "bogus"},
         'from String "bogus": not one of the values accepted for Enum class: '
         "[consumer_backlog_eviction, producer_exception, producer_request_hold]"),
        ({"policy": "PRODUCER_EXCEPTION"}, "not one of the values accepted"),
        ({"policy": 1}, "from 1: not one of the values accepted for Enum class: [consumer_b"),
        ({"limitSize": 1 << 63}, "value (9223372036854775808) out of range of long (-92"),
        ({"limitSize": -(1 << 63) - 1}, "out of range of long"),
        ({"limit": 1 << 63}, "out of range of long"),
        ({"limit": 1 << 90, "limitSize": 5}, "out of range of long"),
        ({"limitTime": 1 << 31}, "value (2147483648) out of range of int (-2147483648 - 21"),
        ({"limitTime": -(1 << 31) - 1}, "out of range of int"),
        ({"limitSize": "many"}, '`int` from String "many"'),
        ({"limitSize": 1.5}, "`int` from 1.5"),
        ({"limitSize": None}, "from null"),
        ({"limitTime": True}, "from true"),
        ({"limitTime": [5]}, "from [5]"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_changes_nothing(
    api: Ask, path: str, kind: str, wrong: dict[str, Any], text: str
) -> None:
    before = {kind: quota(5, 6)}
    assert api("POST", of_type(path, kind), quota(5, 6)).status == 204
    answer = api("POST", of_type(path, kind), {"policy": "producer_exception"} | wrong)
    assert answer.status == 400
    assert text in answer.reason
    assert quotas(api, path) == before


@pytest.mark.parametrize("body", [{}, {"limitSize": 1_000}, {"limitSize": 1, "policy": None}])
def test_a_policy_must_be_given(api: Ask, path: str, body: dict[str, Any]) -> None:
    api("POST", f"{path}/backlogQuota", quota(5))
    answer = api("POST", f"{path}/backlogQuota", body)
    assert (answer.status, answer.reason) == (
        400,
        f"Set {SUBJECTS[path]} backlog quota failed because the data validation failed. "
        "the attribute policy cannot be null",
    )
    assert quotas(api, path) == {SIZE: quota(5)}


@pytest.mark.parametrize("body", [b"5", b"[]", b"{", b'{"limit":}', b"\xff", b'"x"'])
def test_what_is_no_object_is_refused(api: Ask, path: str, body: bytes) -> None:
    api("POST", f"{path}/backlogQuota", quota(5))
    answer = api("POST", f"{path}/backlogQuota", body)
    assert (answer.status, bool(answer.reason)) == (400, True)
    assert quotas(api, path) == {SIZE: quota(5)}


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("kind", ["foo", "", "DESTINATION_STORAGE", "size"])
def test_unknown_types_are_not_found(api: Ask, path: str, method: str, kind: str) -> None:
    api("POST", f"{path}/backlogQuota", quota(5))
    answer = api(method, of_type(path, kind), quota(6))
    assert (answer.status, answer.reason) == (
        404,
        f"backlogQuotaType is {kind!r}: destination_storage or message_age is allowed",
    )
    assert quotas(api, path) == {SIZE: quota(5)}


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("/admin/v2/namespaces/public/none", "Namespace does not exist"),
        ("/admin/v2/namespaces/none/none", "Namespace does not exist"),
        (f"{P}/none", "Topic persistent://public/default/none not found"),
    ],
)
def test_quotas_have_a_place(api: Ask, where: str, reason: str) -> None:
    for method, segment in (
        ("GET", "backlogQuotaMap"),
        ("POST", "backlogQuota"),
        ("DELETE", "backlogQuota"),
    ):
        answer = api(method, f"{where}/{segment}", None if method == "GET" else quota(5))
        assert (answer.status, answer.reason) == (404, reason)


# Retention ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "retention", "fits", "exceeds", "numbers"),
    [
        (SIZE, (-1, 100), quota(100 * MIB - 1, 1 << 30), quota(100 * MIB),
         "quota 104857600 bytes, retention 100 MB"),
        (AGE, (10, -1), quota(1 << 60, 599), quota(limit_time=600),
         "quota 600 s, retention 10 min"),
    ],
)  # fmt: skip
def test_quota_and_retention_must_fit_in_either_order(
    api: Ask,
    path: str,
    kind: str,
    retention: tuple[int, int],
    fits: dict[str, Any],
    exceeds: dict[str, Any],
    numbers: str,
) -> None:
    level = "namespace" if path == NS else "topic"
    assert retain(api, path, *retention).status == 204
    assert api("POST", of_type(path, kind), fits).status == 204
    answer = api("POST", of_type(path, kind), exceeds)
    assert (answer.status, answer.reason) == (412, f"{TOO_LARGE.format(level)}{numbers})")
    assert quotas(api, path) == {kind: fits}

    kept = api("GET", f"{path}/retention").json()
    assert api("DELETE", f"{path}/retention").status == 204
    assert api("POST", of_type(path, kind), exceeds).status == 204
    answer = retain(api, path, *retention)
    assert answer.status == 412
    assert answer.reason.startswith(TOO_SMALL.format(level))
    assert answer.reason.endswith(f" ({numbers})")
    assert api("GET", f"{path}/retention").body == b""
    assert api("DELETE", of_type(path, kind)).status == 204
    assert retain(api, path, *retention).status == 204
    assert api("GET", f"{path}/retention").json() == kept


def test_retention_that_keeps_nothing_or_everything_bounds_no_quota(api: Ask, path: str) -> None:
    for retention in ((0, 0), (-1, -1)):
        assert retain(api, path, *retention).status == 204
        for kind in (SIZE, AGE):
            large = quota((1 << 63) - 1, (1 << 31) - 1)
            assert api("POST", of_type(path, kind), large).status == 204
        assert retain(api, path, *retention).status == 204


def test_no_limit_and_zero_exceed_no_retention(api: Ask, path: str) -> None:
    assert retain(api, path, 1, 1).status == 204
    for kind in (SIZE, AGE):
        for limits in (quota(), quota(0, 0)):
            assert api("POST", of_type(path, kind), limits).status == 204


def test_of_each_type_its_own_limit_is_compared(api: Ask, path: str) -> None:
    assert retain(api, path, 1, 1).status == 204
    assert api("POST", of_type(path, SIZE), quota(5, 1 << 30)).status == 204
    assert api("POST", of_type(path, AGE), quota(1 << 60, 5)).status == 204
    assert retain(api, path, 2, 2).status == 204


def test_a_topics_quota_is_compared_with_the_retention_in_force(
    api: Ask, broker: FakeFacade
) -> None:
    api("PUT", T)
    large = quota(MIB)
    broker.default_retention = Retention(-1, 1)
    assert api("POST", f"{NS}/backlogQuota", large).status == 204
    assert api("POST", f"{T}/backlogQuota", large).reason.startswith(TOO_LARGE.format("topic"))
    retain(api, NS, -1, 2)
    assert api("POST", f"{T}/backlogQuota", large).status == 204
    api("DELETE", f"{T}/backlogQuota")
    api("DELETE", f"{NS}/backlogQuota")
    retain(api, NS, -1, 1)
    retain(api, T, -1, 2)
    assert api("POST", f"{T}/backlogQuota", large).status == 204
    assert api("DELETE", f"{T}/retention").status == 204
    assert api("POST", f"{T}/backlogQuota", large).status == 412
    assert api("POST", f"{T}/backlogQuota", quota(MIB - 1)).status == 204


def test_a_topics_retention_is_compared_with_the_namespaces_quota(api: Ask) -> None:
    api("PUT", T)
    api("POST", f"{NS}/backlogQuota", quota(MIB))
    answer = retain(api, T, -1, 1)
    assert answer.status == 412
    assert answer.reason.startswith(TOO_SMALL.format("topic"))
    assert api("GET", f"{T}/retention").body == b""
    api("POST", f"{T}/backlogQuota", quota())
    assert retain(api, T, -1, 1).status == 204


# Creation of a namespace ----------------------------------------------------------------------


def create(api: Ask, quota_map: Any, **more: Any) -> Any:
    return api("PUT", "/admin/v2/namespaces/public/ns", {"backlog_quota_map": quota_map} | more)


def test_a_namespace_may_be_created_with_quotas(api: Ask) -> None:
    hold = {"policy": "producer_request_hold"}
    assert create(api, {AGE: hold | {"limitTime": 5}, SIZE: hold | {"limit": 7}}).status == 204
    shown = quotas(api, "/admin/v2/namespaces/public/ns")
    assert list(shown.items()) == [(SIZE, quota(7)), (AGE, quota(limit_time=5))]


@pytest.mark.parametrize(
    ("quota_map", "status", "text"),
    [
        ({SIZE: {"limitSize": 5}}, 400,
         "Set namespace[public/ns] backlog quota failed because the data validation failed. "
         "the attribute policy cannot be null"),
        ({SIZE: {"policy": "bogus"}}, 400,
         'from String "bogus": not one of the values accepted for Enum class: [consumer_b'),
        ({"size": quota(5)}, 400,
         'from String "size": not one of the values accepted for Enum class: '
         "[destination_storage, message_age]"),
        ({SIZE: None}, 400, "Cannot deserialize value of type `object`"),
        ({SIZE: quota(1 << 63)}, 400, "out of range of long"),
        ([], 400, "Cannot deserialize"),
        ({AGE: quota(limit_time=60)}, 412, TOO_LARGE.format("namespace")),
    ],
)  # fmt: skip
def test_bad_quotas_create_nothing(api: Ask, quota_map: Any, status: int, text: str) -> None:
    retention = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}
    answer = create(api, quota_map, retention_policies=retention)
    assert answer.status == status
    assert text in answer.reason
    assert api("GET", "/admin/v2/namespaces/public/ns").status == 404


# Requests at the same time --------------------------------------------------------------------


@pytest.mark.parametrize("where", LEVELS.values())
def test_requests_cannot_pass_each_other(where: str) -> None:
    """The second is compared with what the first will have set, though that is not durable."""

    class SlowFacade(FakeFacade):
        async def commit(self, change: Any) -> None:
            await asyncio.sleep(0)
            await super().commit(change)

    async def both(app: AdminApp) -> list[Any]:
        retention = {"retentionTimeInMinutes": -1, "retentionSizeInMB": 1}
        return list(
            await asyncio.gather(
                ask_async(app, "POST", f"{where}/backlogQuota", encode(quota(MIB))),
                ask_async(app, "POST", f"{where}/retention", encode(retention)),
                ask_async(app, "POST", of_type(where, AGE), encode(quota(limit_time=5))),
            )
        )

    facade = SlowFacade()
    app = AdminApp(facade, facade.clock)
    ask(app, "PUT", T)
    first, second, third = asyncio.run(both(app))
    assert (first.status, second.status, third.status) == (204, 412, 204)
    found = ask(app, "GET", f"{where}/backlogQuotaMap").json()
    assert found == {SIZE: quota(MIB), AGE: quota(limit_time=5)}
    assert ask(app, "GET", f"{where}/retention").body == b""
