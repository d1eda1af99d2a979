"""Runs of ``headgate pipeline alerts``: what targets get, also after failures."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import urllib3

from headgate.base.errors import InputError
from headgate.pipeline.alerts.delivery import ATTEMPTS_MAX, Reply
from headgate.pipeline.alerts.job import (
    DOWN_TENANTS_MAX,
    REFUSALS_MAX,
    REFUSED_TENANTS_MAX,
    run_alerts,
)
from headgate.pipeline.alerts.options import AlertOptions, Credentials
from headgate.pipeline.alerts.payloads import BATCH_MAX
from headgate.pipeline.alerts.selection import LEFT_OUT
from headgate.pipeline.alerts.state import StateFile, TargetState
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import iso_text
from tests.unit.pipeline.alerts.folder import NOW_NS, OPEN, open_segment, segment, telemetry
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, quota_row, write

AM = "http://am:9093"
HOOK = "https://hooks/secret-path"


class Receiver:
    """A target in memory."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.before: Callable[[str], Reply | None] = lambda url: None
        self.refused, self.refusals = b"", 0
        self.refusal: Reply | None = Reply(400)
        """None: the connection ends without an answer."""

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        early = self.before(url)
        if early is not None:
            return early
        if self.refused and self.refused in body:
            self.refusals += 1
            if self.refusal is None:
                raise urllib3.exceptions.ProtocolError("reset")
            return self.refusal
        self.requests.append((url, json.loads(body)))
        return Reply(200)

    def taken(self) -> list[dict[str, Any]]:
        """The alerts since the last call."""
        found = [
            alert
            for _, body in self.requests
            for alert in (body if isinstance(body, list) else body["alerts"])
        ]
        self.requests.clear()
        return found


class Play:
    """One folder, one receiver, one clock."""

    def __init__(self, root: Path) -> None:
        self.root, self.receiver, self.now_ns = root, Receiver(), NOW_NS
        self.err = io.StringIO()

    def tables(self, *segments: dict[str, Any]) -> None:
        """Begin the tables anew, up to now."""
        for name in ("episodes", "bronze_samples"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        telemetry(self.root, self.now_ns)
        write(self.root, "episodes", list(segments))

    def run(self, **more: Any) -> bool:
        options = AlertOptions(
            str(self.root), **{"alertmanagers": (AM,), "kinds": ("backlog",), **more}
        )
        self.err = io.StringIO()
        return run_alerts(
            options, io.StringIO(), self.err, transport=self.receiver,
            wall_ns=lambda: self.now_ns, sleep=lambda _: None,
        )  # fmt: skip


@pytest.fixture
def play(tmp_path: Path) -> Play:
    found = Play(tmp_path / "tables")
    found.tables(open_segment())
    return found


def test_alertmanager_gets_each_open_backlog_in_each_run_and_its_end(play: Play) -> None:
    assert play.run(labels=(("env", "prod"),))
    assert play.err.getvalue() == "Sent to http://am:9093: 1 new.\n"
    ((url, (alert,)),) = play.receiver.requests
    assert url == AM + "/api/v2/alerts"
    assert alert["labels"] == {
        "alertname": "HeadgateBacklog", "severity": "warning", "cluster": "c1",
        "namespace": "public/default", "topic": NS + "slow", "subscription": "s", "env": "prod",
    }  # fmt: skip
    assert (alert["startsAt"], alert["endsAt"]) == ("2025-11-21T11:05:00Z", "2025-11-21T11:35:00Z")
    play.receiver.taken()
    play.now_ns += MINUTE_NS
    assert play.run()
    assert [alert["endsAt"] for alert in play.receiver.taken()] == ["2025-11-21T11:36:00Z"]
    assert play.err.getvalue() == "Sent to http://am:9093: 1 again.\n"
    play.now_ns += 5 * MINUTE_NS
    play.tables(segment(NOW_NS - 15 * MINUTE_NS, NOW_NS + 2 * MINUTE_NS))
    assert play.run()
    assert [alert["endsAt"] for alert in play.receiver.taken()] == ["2025-11-21T11:22:00Z"]
    assert play.err.getvalue() == "Sent to http://am:9093: 1 resolved.\n"
    assert play.run()
    assert play.receiver.taken() == []
    assert play.err.getvalue() == "Sent to http://am:9093: nothing is due.\n"


def test_a_webhook_gets_changes_only_and_its_path_is_in_no_message(play: Play) -> None:
    hook = {"alertmanagers": (), "webhook": HOOK}
    assert play.run(**hook)
    (alert,) = play.receiver.taken()
    assert (alert["status"], alert["endsAt"]) == ("firing", "0001-01-01T00:00:00Z")
    assert play.err.getvalue() == "Sent to https://hooks: 1 new.\n"
    play.now_ns += MINUTE_NS
    assert play.run(**hook)
    assert play.receiver.taken() == []
    play.now_ns += 5 * MINUTE_NS
    play.tables(segment(NOW_NS - 15 * MINUTE_NS, NOW_NS))
    assert play.run(**hook)
    assert [alert["status"] for alert in play.receiver.taken()] == ["resolved"]
    stored = "".join(path.read_text() for path in (play.root / "_alerts").iterdir())
    assert "secret-path" not in stored + play.err.getvalue()


def test_what_a_target_that_is_down_missed_is_sent_later(play: Play) -> None:
    """Also an episode that began and ended meanwhile; the other target gets its alerts."""
    other = "http://other:9093"
    down = Reply(503, "starting")
    play.receiver.before = lambda url: down if url.startswith(AM) else None
    assert not play.run(alertmanagers=(AM, other))
    assert play.err.getvalue() == (
        "http://am:9093 answered 503: starting (tried 3 times); 1 of 1 wait for the next run.\n"
        "Sent to http://other:9093: 1 new.\n"
    )
    play.now_ns += 5 * MINUTE_NS
    play.tables(segment(NOW_NS - 15 * MINUTE_NS, NOW_NS))
    assert not play.run(alertmanagers=(AM, other))
    play.receiver.taken()
    play.receiver.before = lambda url: None
    assert play.run(alertmanagers=(AM, other))
    assert [alert["endsAt"] for alert in play.receiver.taken()] == ["2025-11-21T11:20:00Z"]


def test_a_refused_request_stops_no_other(play: Play) -> None:
    count = BATCH_MAX + 5
    play.tables(*(open_segment(15, f"{NS}t{number:03}") for number in range(count)))
    replies = iter([Reply(400, "bad")])
    play.receiver.before = lambda url: next(replies, None)
    assert not play.run()
    assert len(play.receiver.taken()) == 5
    assert f"answered 400: bad; {BATCH_MAX} of {count} wait for the next run" in play.err.getvalue()


@pytest.mark.parametrize("status", [302, 403, 500, 502, None])
def test_names_that_a_target_refuses_keep_no_alerts_of_other_tenants_back(
    play: Play, status: int | None
) -> None:
    """Clients choose names; a firewall refuses some, and a target that cannot store one fails."""
    play.receiver.refused = b"<script>"
    play.receiver.refusal = None if status is None else Reply(status, "blocked")
    evil = [f"persistent://evil/ns/t{number}" for number in range(4 * BATCH_MAX)]
    names = ["persistent://bank/ns/t", *evil, "persistent://shop/ns/t"]
    rows = {"persistent://bank/ns/t", "persistent://shop/ns/t"}
    play.tables(
        *(
            open_segment(
                15, name, subscription="s" if name in rows else "<script>",
                oldest_age_max_ns=len(names) - place,
            )
            for place, name in enumerate(names)
        )
    )  # fmt: skip
    assert not play.run(count=len(names))
    assert {alert["labels"]["topic"] for alert in play.receiver.taken()} == rows
    again = 0 if status in (302, 403) else ATTEMPTS_MAX - 1
    assert play.receiver.refusals <= again + REFUSALS_MAX + 2, "alone, and beside others"


@pytest.mark.parametrize("refusal", [Reply(500), Reply(502), None])
def test_names_of_several_tenants_that_a_target_refuses_keep_none_of_others_back(
    play: Play, refusal: Reply | None
) -> None:
    """Also if the refused ones have the worst backlogs, and fill whole requests."""
    play.receiver.refused, play.receiver.refusal = b"<script>", refusal
    evil = [f"persistent://evil{n % REFUSED_TENANTS_MAX}/ns/t{n}" for n in range(3 * BATCH_MAX)]
    others = [f"persistent://t{number}/ns/t" for number in range(40)]
    play.tables(
        *(
            open_segment(
                15, name, subscription="s" if place >= len(evil) else "<script>",
                oldest_age_max_ns=len(evil) + len(others) - place,
            )
            for place, name in enumerate([*evil, *others])
        )
    )  # fmt: skip
    assert not play.run(count=len(evil) + len(others))
    assert {alert["labels"]["topic"] for alert in play.receiver.taken()} == {*others}


@pytest.mark.parametrize("refusal", [Reply(500), Reply(503), None])
def test_an_alert_that_began_again_is_open_though_its_first_end_arrives_late(
    play: Play, refusal: Reply | None
) -> None:
    """A webhook took the end of an earlier backlog for that of the present one."""
    hook = {"alertmanagers": (), "webhook": HOOK}
    assert play.run(**hook)
    play.now_ns += 90 * MINUTE_NS
    play.tables(segment(play.now_ns - 15 * MINUTE_NS, play.now_ns, **OPEN))
    play.receiver.refused, play.receiver.refusal = b'"status": "resolved"', refusal
    assert not play.run(**hook)
    play.receiver.refused = b""
    for _ in range(3):
        play.now_ns += MINUTE_NS
        assert play.run(**hook)
    told = [alert["status"] for alert in play.receiver.taken()]
    assert told[-2:] == ["resolved", "firing"], told


def test_a_request_that_is_accepted_in_parts_is_no_failure(play: Play) -> None:
    """As by a proxy that takes small bodies alone."""
    play.tables(*(open_segment(15, f"persistent://t{number}/ns/t") for number in range(9)))
    replies = iter([Reply(413, "too large")])
    play.receiver.before = lambda url: next(replies, None)
    assert play.run()
    assert len(play.receiver.taken()) == 9
    assert play.err.getvalue() == "Sent to http://am:9093: 9 new.\n"


@pytest.mark.parametrize("refusal", [Reply(503), None])
def test_a_target_that_is_down_is_asked_a_few_times_in_a_run(
    play: Play, refusal: Reply | None
) -> None:
    play.tables(*(open_segment(15, f"persistent://t{number}/ns/t") for number in range(90)))
    play.receiver.refused, play.receiver.refusal = b"persistent", refusal
    assert not play.run()
    assert play.receiver.refusals == ATTEMPTS_MAX + DOWN_TENANTS_MAX
    assert "90 of 90 wait for the next run" in play.err.getvalue()
    play.receiver.refusal, play.receiver.refusals = Reply(429), 0
    assert not play.run()
    assert play.receiver.refusals == ATTEMPTS_MAX, "it has asked for fewer requests"


def test_a_target_that_refuses_all_is_asked_a_bounded_number_of_times(play: Play) -> None:
    play.tables(*(open_segment(15, f"persistent://t{number}/ns/t") for number in range(90)))
    play.receiver.refused = b"persistent"
    assert not play.run()
    assert play.receiver.refusals == 1 + REFUSED_TENANTS_MAX
    assert "90 of 90 wait for the next run" in play.err.getvalue()


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_run_that_is_killed_while_it_sends_loses_no_end(play: Play, is_sent: bool) -> None:
    class KilledError(BaseException):
        pass

    def kill(url: str) -> Reply | None:
        if is_sent:
            play.receiver.requests.append((url, []))
        raise KilledError

    play.receiver.before = kill
    with pytest.raises(KilledError):
        play.run()
    play.receiver.before = lambda url: None
    play.receiver.taken()
    play.now_ns += 5 * MINUTE_NS
    play.tables(segment(NOW_NS - 15 * MINUTE_NS, NOW_NS))
    assert play.run()
    assert [alert["endsAt"] for alert in play.receiver.taken()] == ["2025-11-21T11:20:00Z"]


def test_without_its_state_a_run_sends_all_open_alerts_again(play: Play) -> None:
    hook = {"alertmanagers": (), "webhook": HOOK}
    assert play.run(**hook)
    first = play.receiver.taken()
    (stored,) = (play.root / "_alerts").glob("*.json")
    stored.write_text("{")
    assert play.run(**hook)
    assert play.receiver.taken() == first
    assert "its content is damaged" in play.err.getvalue()
    stored.unlink()
    assert play.run(**hook)
    assert play.receiver.taken() == first


def test_on_a_full_disk_alerts_are_sent(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headgate.pipeline.alerts.state.os.fsync", full)
    assert not play.run()
    assert len(play.receiver.taken()) == 1
    assert play.err.getvalue() == (
        "The state of http://am:9093 cannot be stored (No space left on device): alerts are sent, "
        "and the next run may send them again.\n"
        "Sent to http://am:9093: 1 new.\n"
    )


def test_a_flood_is_bounded(play: Play) -> None:
    play.tables(*(open_segment(15, f"{NS}t{number}") for number in range(30)))
    assert play.run(count=10)
    alerts = play.receiver.taken()
    assert len(alerts) == 11
    (left,) = (each for each in alerts if each["labels"]["alertname"] == LEFT_OUT)
    assert left["annotations"]["summary"] == "20 more alerts are not sent"
    play.now_ns += MINUTE_NS
    assert play.run(count=10)
    assert {alert["labels"].get("topic") for alert in play.receiver.taken()} == {
        alert["labels"].get("topic") for alert in alerts
    }


def test_long_names_make_many_requests_and_the_state_is_stored_few_times(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "\U0001f600" * 500
    names = [f"{long}{number}" for number in range(60)]
    play.tables(*(open_segment(15, NS + long, subscription=name) for name in names))
    saves: list[int] = []
    save = StateFile.save

    def counted(file: StateFile, state: TargetState) -> None:
        saves.append(len(state.open))
        save(file, state)

    monkeypatch.setattr(StateFile, "save", counted)
    assert play.run()
    assert len(play.receiver.requests) > 3
    assert len(play.receiver.taken()) == 60
    assert saves == [60, 60], "before the first request, and after at most a hundred alerts"


def test_what_more_severe_alerts_displace_does_not_end_at_the_target(play: Play) -> None:
    """Its end comes when it is over."""
    asked: dict[str, Any] = {"kinds": ("backlog", "quota"), "count": 1}
    last = (NOW_NS - T0) // MINUTE_NS - 1
    full = quota_row(last, NS + "full", to_ns=NOW_NS, seconds_to_breach=0.0)
    write(play.root, "quota_usage", [full])
    (play.root / "quota_usage").rename(play.root / "later")
    assert play.run(**asked)
    assert [alert["labels"]["topic"] for alert in play.receiver.taken()] == [NS + "slow"]
    (play.root / "later").rename(play.root / "quota_usage")
    assert play.run(**asked)
    now = iso_text(play.now_ns).replace("+00:00", "Z")
    sent = play.receiver.taken()
    assert [alert["labels"]["topic"] for alert in sent] == [NS + "full", NS + "slow"]
    assert all(alert["endsAt"] > now for alert in sent)
    play.now_ns += 5 * MINUTE_NS
    play.tables(segment(NOW_NS - 15 * MINUTE_NS, NOW_NS))
    assert play.run(**asked)
    (ended,) = (a for a in play.receiver.taken() if a["labels"]["topic"] == NS + "slow")
    assert ended["endsAt"] == "2025-11-21T11:20:00Z"


def test_a_second_job_for_the_same_target_is_refused(play: Play) -> None:
    def second(_: str) -> None:
        run_alerts(
            AlertOptions(str(play.root), (AM,)), io.StringIO(), io.StringIO(),
            transport=play.receiver, wall_ns=lambda: NOW_NS,
        )  # fmt: skip

    play.receiver.before = second
    with pytest.raises(InputError, match="another headgate pipeline alerts"):
        play.run()


def test_a_wrong_folder_is_left_as_it_is(play: Play, tmp_path: Path) -> None:
    play.root = tmp_path / "none"
    with pytest.raises(InputError, match="there is no folder"):
        play.run()
    assert not play.root.exists()


def test_a_dry_run_prints_the_requests_and_stores_nothing(play: Play) -> None:
    out, err = io.StringIO(), io.StringIO()
    options = AlertOptions(
        str(play.root), kinds=("backlog",), is_dry_run=True, report_url="https://h/r.html"
    )
    assert run_alerts(options, out, err, wall_ns=lambda: NOW_NS)
    (alert,) = json.loads(out.getvalue())
    assert alert["annotations"]["report"] == "https://h/r.html#backlogs"
    assert err.getvalue() == "1 alert is open; nothing was sent.\n"
    assert not (play.root / "_alerts").exists()
    out = io.StringIO()
    hook = AlertOptions(str(play.root), webhook=HOOK, is_dry_run=True)
    assert run_alerts(hook, out, err, wall_ns=lambda: NOW_NS)
    assert json.loads(out.getvalue())["version"] == "4"


def test_a_job_that_repeats_survives_a_failure(play: Play, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("x")
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        token.unlink() if len(naps) == 1 else token.write_text("y")

    options = AlertOptions(
        str(play.root), (AM,), every="60s", credentials=Credentials(token_path=str(token))
    )
    stops = iter([False, False, True])
    assert run_alerts(
        options, io.StringIO(), play.err, transport=play.receiver, wall_ns=lambda: NOW_NS,
        sleep=sleep, should_stop=lambda: next(stops),
    )  # fmt: skip
    assert naps == [60.0, 60.0]
    assert len(play.receiver.taken()) == 2
    assert "cannot be read: No such file or directory; the next run tries again." in (
        play.err.getvalue()
    )


def test_an_unreachable_target_is_named(play: Play) -> None:
    def refuse(_: str) -> Reply:
        raise urllib3.exceptions.ProtocolError("gone", ConnectionRefusedError(111, "refused"))

    play.receiver.before = refuse
    assert not play.run()
    assert "http://am:9093 cannot be reached: [Errno 111] refused (tried 3 times)" in (
        play.err.getvalue()
    )
