"""The audit log: a line for each change and refusal, which nobody can forge or flood."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.base.identity import Identity
from headgate.base.units import NS_PER_S
from headgate.broker.audit import SHORT_MAX, TENANTS_MAX, TEXT_MAX, AuditLog, logger
from headgate.broker.audit_limit import (
    CHANGE_LINES,
    CHANGE_SOURCE_LINES,
    SOURCE_LINES,
    WINDOW_LINES,
    WINDOW_NS,
)
from headgate.testing import ManualClock, SimLoop

WHO = Identity("app", original_role="alice")


def entry(**more: Any) -> AuditEntry:
    facts: dict[str, Any] = {
        "operation": "topic.delete",
        "resource": "persistent://public/default/orders",
        "result": AuditResult.REFUSED,
        "identity": WHO,
        "address": "10.0.0.7:4711",
        "status": 403,
        "reason": "not authorized",
        "request": "DELETE /admin/v2/persistent/{tenant}/{namespace}/{topic}",
    }
    return AuditEntry(**(facts | more))


@pytest.fixture
def loop() -> Any:
    made = SimLoop(ManualClock())
    yield made
    made.close()


@pytest.fixture
def audit(loop: SimLoop) -> AuditLog:
    return AuditLog(loop.clock, loop)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(each.getMessage()) for each in caplog.records if each.name == logger.name]


def test_a_failed_login_has_a_line(audit: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        audit.note_failed_login("token", "10.0.0.7", "the token expired 5 s ago")
    (line,) = lines(caplog)
    assert line.pop("time")
    assert line == {
        "role": "",
        "address": "10.0.0.7",
        "operation": "connection.open",
        "request": "credentials of the method token",
        "result": "refused",
        "status": 401,
        "reason": "the token expired 5 s ago",
    }


def test_a_request_that_was_refused_before_its_route_has_a_line(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        audit.note_refused_request(421, "/10.0.0.7:80", "Host 'evil' is not a name", "GET")
    (line,) = lines(caplog)
    assert line.pop("time")
    assert line == {
        "role": "",
        "address": "10.0.0.7:80",
        "operation": "http.request",
        "request": "GET",
        "result": "refused",
        "status": 421,
        "reason": "Host 'evil' is not a name",
    }


def test_a_line_says_who_asked_for_what_and_what_became_of_it(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        audit.note(entry())
    (line,) = lines(caplog)
    assert line.pop("time").endswith("Z")
    assert line == {
        "role": "app",
        "address": "10.0.0.7:4711",
        "operation": "topic.delete",
        "originalRole": "alice",
        "resource": "persistent://public/default/orders",
        "request": "DELETE /admin/v2/persistent/{tenant}/{namespace}/{topic}",
        "result": "refused",
        "status": 403,
        "reason": "not authorized",
    }


@pytest.mark.parametrize(
    "name",
    [
        'a"b',
        "a\nrole=admin",
        "a\r\n{}",
        "a\u2028b\u0085c",
        "\x1b[2J",
        "\ud800",
        "a\\",
        "\N{SNOWMAN}" * 9,
    ],
)
def test_no_name_makes_a_line_of_its_own(
    audit: AuditLog, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        audit.note(entry(resource=name, identity=Identity(name), subscription=name, reason=name))
    (record,) = caplog.records
    text = record.getMessage()
    assert text.isascii()
    assert text.isprintable()
    found = json.loads(text)
    assert found["resource"] == found["role"] == found["subscription"] == found["reason"] == name


def test_a_long_name_is_cut(audit: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        audit.note(entry(resource="\N{SNOWMAN}" * 60_000, change="x" * 60_000))
        audit.note(entry(resource="x" * (TEXT_MAX + 1), subscription="x" * TEXT_MAX))
    first, second = lines(caplog)
    assert first["resource"] == "\N{SNOWMAN}" * SHORT_MAX + "..."
    assert first["change"] == second["resource"] == "x" * TEXT_MAX + "..."
    assert second["subscription"] == "x" * TEXT_MAX
    assert len(caplog.records[0].getMessage()) < 10 * TEXT_MAX


def test_refusals_are_bounded_and_counted_when_the_client_is_gone(
    audit: AuditLog, loop: SimLoop, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        for _ in range(1_000):
            audit.note(entry())
        assert len(lines(caplog)) == SOURCE_LINES
        loop.run_until_complete(asyncio.sleep(WINDOW_NS / NS_PER_S + 1))
        count = lines(caplog)[-1]
        assert count["leftOut"] == 1_000 - SOURCE_LINES
        assert (count["role"], count["host"], count["result"]) == ("app", "10.0.0.7", "refused")
        loop.run_until_complete(asyncio.sleep(10 * WINDOW_NS / NS_PER_S))
    assert len(lines(caplog)) == SOURCE_LINES + 1


def test_counts_are_written_when_the_broker_closes(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        for _ in range(SOURCE_LINES + 5):
            audit.note(entry())
        audit.close()
        audit.close()
    assert lines(caplog)[-1]["leftOut"] == 5
    assert len(lines(caplog)) == SOURCE_LINES + 1


def test_a_change_of_the_admin_api_always_has_its_line_and_is_told(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[AuditEntry] = []
    audit.listeners.append(lambda entry, _: told.append(entry))
    with caplog.at_level(logging.INFO, logger.name):
        for _ in range(100):
            audit.note(entry(result=AuditResult.ALLOWED, status=204), is_bounded=False)
            audit.note(entry(result=AuditResult.FAILED, status=503), is_bounded=False)
        audit.note(entry())
    assert len(lines(caplog)) == 201
    assert len(told) == 100  # what may have been carried out is told nobody


def test_a_role_that_changes_something_all_the_time_does_not_fill_the_disk(
    audit: AuditLog, loop: SimLoop, caplog: pytest.LogCaptureFixture
) -> None:
    def changed(role: str, operation: str) -> None:
        given = {"identity": Identity(role), "operation": operation, "status": 204}
        audit.note(entry(result=AuditResult.ALLOWED, **given), is_bounded=False)

    with caplog.at_level(logging.INFO, logger.name):
        for _ in range(20_000):
            changed("shop", "subscription.skip")
        assert len(lines(caplog)) == CHANGE_SOURCE_LINES
        changed("shop", "namespace.policy.write")
        assert lines(caplog)[-1]["operation"] == "namespace.policy.write"
        changed("other", "subscription.skip")
        assert lines(caplog)[-1]["role"] == "other"
        for number in range(2 * CHANGE_LINES):
            changed("shop", f"topic.{number}")
        assert len(lines(caplog)) == CHANGE_LINES + 1
        loop.run_until_complete(asyncio.sleep(WINDOW_NS / NS_PER_S + 1))
    counted = [line for line in lines(caplog) if "leftOut" in line]
    left_out = 20_000 + 1 + 2 * CHANGE_LINES - CHANGE_LINES
    assert sum(line["leftOut"] for line in counted) == left_out
    assert counted[0]["role"] == "shop"
    assert counted[0]["leftOut"] == 20_000 - CHANGE_SOURCE_LINES


@pytest.mark.parametrize(
    "who",
    [Identity("admin"), Identity("ops", "admin"), Identity("")],
    ids=["super user", "behind a proxy", "without authentication"],
)
def test_the_changes_of_a_super_user_have_no_bound(
    loop: SimLoop, caplog: pytest.LogCaptureFixture, who: Identity
) -> None:
    audit = AuditLog(loop.clock, loop, "admin, ops")
    with caplog.at_level(logging.INFO, logger.name):
        for _ in range(2 * CHANGE_LINES):
            audit.note(
                entry(result=AuditResult.ALLOWED, status=204, identity=who), is_bounded=False
            )
    assert len(lines(caplog)) == 2 * CHANGE_LINES


def test_a_role_behind_the_proxy_of_a_super_user_has_the_bound(
    loop: SimLoop, caplog: pytest.LogCaptureFixture
) -> None:
    audit = AuditLog(loop.clock, loop, "proxy")
    with caplog.at_level(logging.INFO, logger.name):
        for number in range(2 * CHANGE_LINES):
            who = Identity("proxy", "shop")
            change = entry(
                result=AuditResult.FAILED, status=503, identity=who, operation=f"o{number % 5}"
            )
            audit.note(change, is_bounded=False)
    assert len(lines(caplog)) == CHANGE_LINES


@pytest.mark.parametrize("result", [AuditResult.ALLOWED, AuditResult.FAILED])
def test_refusals_and_other_tenants_take_no_lines_of_what_was_carried_out(
    audit: AuditLog, caplog: pytest.LogCaptureFixture, result: AuditResult
) -> None:
    """A command of the binary protocol, which is bounded. One that failed may be carried out."""
    with caplog.at_level(logging.INFO, logger.name):
        for number in range(2 * WINDOW_LINES):
            audit.note(entry(identity=Identity(f"a{number}")))
            audit.note(entry(identity=Identity(f"b{number}"), result=result, status=0))
        deletion = entry(
            operation="subscription.delete", resource="persistent://acme/prod/t",
            result=result, status=0,
        )  # fmt: skip
        audit.note(deletion)
    assert len(lines(caplog)) == 2 * WINDOW_LINES + 1
    assert lines(caplog)[-1]["resource"] == "persistent://acme/prod/t"


def test_bounds_of_tenants_are_not_kept_for_ever(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        for number in range(3 * TENANTS_MAX):
            audit.note(entry(resource=f"persistent://t{number}/n/t", result=AuditResult.ALLOWED))
            change = entry(identity=Identity(f"r{number}"), result=AuditResult.ALLOWED)
            audit.note(change, is_bounded=False)
    assert len(audit._done_limits) <= TENANTS_MAX
    assert len(audit._change_limits) <= TENANTS_MAX


def test_clients_that_connect_are_lines_at_debug(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    connected = entry(operation="topic.produce", result=AuditResult.ALLOWED, status=0, reason="")
    with caplog.at_level(logging.INFO, logger.name):
        audit.note(connected)
    assert not lines(caplog)
    with caplog.at_level(logging.DEBUG, logger.name):
        audit.note(connected)
    assert "status" not in lines(caplog)[0]


def test_failed_logins_take_no_line_of_others(
    audit: AuditLog, loop: SimLoop, caplog: pytest.LogCaptureFixture
) -> None:
    """25 addresses that guessed passwords left no line for anybody else."""
    with caplog.at_level(logging.INFO, logger.name):
        for number in range(25):
            for _ in range(SOURCE_LINES + 2):
                audit.note_failed_login("basic", f"2001:db8::{number}", "wrong")
        before = len(lines(caplog))
        audit.note(entry())
        assert len(lines(caplog)) == before + 1
        audit.note_failed_login("basic", "10.0.0.9", "wrong")
        audit.close()
    counts = [line for line in lines(caplog) if "leftOut" in line]
    assert sum(line["leftOut"] for line in counts) + before == 25 * (SOURCE_LINES + 2) + 1
    assert counts[0]["host"].startswith("2001:db8::")
    assert "10.0.0.9" not in {line.get("address") for line in lines(caplog)}


def test_refused_requests_take_no_line_of_others(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger.name):
        for number in range(25):
            for port in range(SOURCE_LINES + 2):
                audit.note_refused_request(429, f"10.0.0.{number}:{port}", "Too many", "GET")
        before = len(lines(caplog))
        audit.note(entry())
        audit.note_failed_login("basic", "10.0.0.9", "wrong")
        assert len(lines(caplog)) == before + 2
        audit.close()
    counts = [line for line in lines(caplog) if "leftOut" in line]
    assert sum(line["leftOut"] for line in counts) + before == 25 * (SOURCE_LINES + 2)
    assert {line["operation"] for line in counts} <= {"http.request", ""}
