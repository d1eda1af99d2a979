"""``headgate pipeline alerts``: sends what is wrong now, and what is over."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TextIO

from headgate.base.clock import SystemClock
from headgate.base.errors import HeadgateError
from headgate.base.units import NS_PER_S
from headgate.pipeline.alerts.alert import tenant_of_labels
from headgate.pipeline.alerts.delivery import (
    ATTEMPTS_MAX,
    DeliveryError,
    Sender,
    Transport,
    headers_of,
    http_transport,
)
from headgate.pipeline.alerts.options import AlertOptions, alertmanager_url, shown_target
from headgate.pipeline.alerts.payloads import (
    BATCH_MAX,
    alertmanager_body,
    batches,
    by_tenant,
    in_turns,
    webhook_body,
)
from headgate.pipeline.alerts.plan import bounded, delivered, due, next_state
from headgate.pipeline.alerts.selection import selected
from headgate.pipeline.alerts.sources import Found, ends_of, found_alerts
from headgate.pipeline.alerts.state import (
    SentAlert,
    StateFile,
    TargetState,
    state_file,
)
from headgate.pipeline.location import resolved_root
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.store.storage_failures import plain_storage_failures

REFUSALS_MAX: Final = 3
"""Requests with alerts of one tenant alone that a target refuses in a run; its others wait."""
REFUSED_TENANTS_MAX: Final = 8
"""So many tenants of which a target refuses such a request end a run: it refuses any. As many more
as requests that it accepted, up to twice as many, do not."""
DOWN_TENANTS_MAX: Final = 2
"""So many, where the target seems to be down, end a run likewise."""


@dataclass(frozen=True, slots=True)
class _Target:
    url: str
    is_webhook: bool
    file: StateFile

    @property
    def shown(self) -> str:
        """The target in messages."""
        return shown_target(self.url)


def run_alerts(
    options: AlertOptions,
    out: TextIO,
    err: TextIO,
    *,
    transport: Transport | None = None,
    wall_ns: Callable[[], int] = SystemClock.wall_ns,
    sleep: Callable[[float], None] = time.sleep,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Send the alerts once, or again and again until ``should_stop``; a dry run writes them to
    ``out``.

    Returns whether each target accepted everything in the last run. Progress goes to ``err``.

    Raises:
        InputError: the folder has no tables, another process sends to the same target, or a file
            cannot be used.
        PipelineError: a table cannot be read, in a job that runs once.
    """
    # Before the state's folder is made: in a wrong folder it would look like somebody else's file.
    existing_tables(options.out)
    if options.is_dry_run:
        with plain_storage_failures(_failed(options.out)):
            _write_dry(options, out, err, wall_ns())
        return True
    post = http_transport(options.credentials.trust_path) if transport is None else transport
    with ExitStack() as held:
        targets = [_held(held, options, url, is_webhook) for url, is_webhook in _urls(options)]
        while True:
            is_well = _run(options, targets, post, err, wall_ns, sleep)
            if options.every_ns is None or should_stop():
                return is_well
            sleep(options.every_ns / NS_PER_S)


def _urls(options: AlertOptions) -> list[tuple[str, bool]]:
    if options.webhook is not None:
        return [(options.webhook, True)]
    return [(url, False) for url in dict.fromkeys(map(alertmanager_url, options.alertmanagers))]


def _held(held: ExitStack, options: AlertOptions, url: str, is_webhook: bool) -> _Target:
    root = resolved_root(options.out)
    folder = options.out if options.work is None else options.work
    file = held.enter_context(state_file(folder, root, url, shown_target(url)))
    return _Target(url, is_webhook, file)


def _run(
    options: AlertOptions,
    targets: Sequence[_Target],
    post: Transport,
    err: TextIO,
    wall_ns: Callable[[], int],
    sleep: Callable[[float], None],
) -> bool:
    """One run; in a job that repeats it, a failure is a line and the next run tries again."""
    try:
        with plain_storage_failures(_failed(options.out)):
            found = found_alerts(options, wall_ns())
        headers = headers_of(options.credentials)
        for remark in found.remarks:
            _say(err, remark)
        is_well = True
        for target in targets:
            sender = Sender(target.url, post, headers, sleep)
            is_well &= _Delivery(options, target, sender, err, wall_ns).run(found)
        return is_well
    except HeadgateError as error:
        if options.every_ns is None:
            raise
        _say(err, f"{error}; the next run tries again.")
        return False


class _Delivery:
    """One run for one target."""

    def __init__(
        self,
        options: AlertOptions,
        target: _Target,
        sender: Sender,
        err: TextIO,
        wall_ns: Callable[[], int],
    ) -> None:
        self._options, self._target, self._sender = options, target, sender
        self._err, self._wall_ns = err, wall_ns
        self._is_stored = True
        self._refusals: Counter[str] = Counter()
        """Refused requests with alerts of one tenant alone."""
        self._attempts_max = ATTEMPTS_MAX
        """One, once a request was repeated in vain: each would take as long."""
        self._accepted_count = 0

    def run(self, found: Found) -> bool:
        """Send what is due; returns whether the target accepted all, and its state is stored."""
        now_ns = self._wall_ns()
        before, lost = self._target.file.load()
        if lost:
            _say(self._err, lost)
        state, dropped = bounded(_planned(self._options, before, found, now_ns), now_ns)
        if dropped:
            _say(self._err, f"{self._target.shown} never accepted {dropped:,} ends: dropped.")
        # Before the first request, so that a run that is killed knows what it may have sent.
        self._store(state)
        is_webhook = self._target.is_webhook
        repeat_ns = self._options.repeat_ns if is_webhook else 0
        count = len(state.ended) + len(due(state, repeat_ns, now_ns))

        def requests() -> Iterator[list[SentAlert]]:
            nonlocal count
            ended, before = state.ended, len(due(state, repeat_ns, now_ns))
            yield from batches(in_turns(ended), by_name=is_webhook)
            # Only now: an end that comes late has the target take its open alert for ended.
            to_send = due(state, repeat_ns, now_ns)
            count += len(to_send) - before
            yield from batches(in_turns(to_send), by_name=is_webhook)

        failures: list[str] = []
        sent: list[SentAlert] = []
        unstored = 0
        for batch in requests():
            if unstored + len(batch) > BATCH_MAX:
                # Not after each request: with long names they are many, and the state is large.
                self._store(state)
                unstored = 0
            try:
                for accepted in self._accepted(batch, now_ns, failures):
                    state = delivered(state, accepted, self._wall_ns())
                    sent += accepted
                    unstored += len(accepted)
            except DeliveryError as error:
                failures.append(str(error))
                break
        if unstored:
            self._store(state)
        self._report(sent, count, failures)
        return not failures and self._is_stored

    def _accepted(
        self, batch: Sequence[SentAlert], now_ns: int, failures: list[str]
    ) -> Iterator[list[SentAlert]]:
        """Send a request; yields the alerts that the target accepts. Those of one that it refuses
        are sent again by tenant: the names of one must not keep the alerts of others back.

        Raises:
            DeliveryError: no other request will do better now.
        """
        requests = [list(batch)]
        for asked in requests:
            refusals = self._refusals
            alerts = [a for a in asked if refusals[tenant_of_labels(a.labels)] < REFUSALS_MAX]
            if not alerts:
                continue
            body = _body(self._options, alerts, self._target.is_webhook, now_ns)
            tenants = by_tenant(alerts)
            try:
                self._sender.send(body, self._attempts_max)
            except DeliveryError as error:
                if error.is_down and not error.is_of_content:
                    raise
                if error.is_repeated:
                    self._attempts_max = 1
                if len(tenants) > 1 and error.is_of_content:
                    # In an order that no tenant knows, so that none is behind refused ones always.
                    requests += Random(now_ns).sample([*tenants.values()], len(tenants))
                    continue
                failures.append(str(error))
                if len(tenants) == 1:
                    refusals.update(tenants.keys())
                    first = DOWN_TENANTS_MAX if error.is_down else REFUSED_TENANTS_MAX
                    if len(refusals) >= first + min(self._accepted_count, REFUSED_TENANTS_MAX):
                        raise
            else:
                self._accepted_count += 1
                yield alerts

    def _store(self, state: TargetState) -> None:
        """Store the state. Alerts matter most while a disk is full, so a failure ends nothing."""
        try:
            self._target.file.save(state)
        except OSError as error:
            if self._is_stored:
                _say(
                    self._err,
                    f"The state of {self._target.shown} cannot be stored ({error.strerror}): alerts"
                    " are sent, and the next run may send them again.",
                )
            self._is_stored = False

    def _report(self, sent: list[SentAlert], count: int, failures: list[str]) -> None:
        ended = sum(alert.ends_ns is not None for alert in sent)
        new = sum(alert.ends_ns is None and alert.delivered_ns is None for alert in sent)
        again = len(sent) - ended - new
        parts = [
            f"{number:,} {word}"
            for number, word in ((new, "new"), (again, "again"), (ended, "resolved"))
            if number
        ]
        if parts or not failures:
            _say(
                self._err, f"Sent to {self._target.shown}: {', '.join(parts) or 'nothing is due'}."
            )
        for failure in dict.fromkeys(failures):
            left = count - len(sent)
            _say(self._err, f"{failure}; {left:,} of {count:,} wait for the next run.")


def _planned(options: AlertOptions, before: TargetState, found: Found, now_ns: int) -> TargetState:
    with plain_storage_failures(_failed(options.out)):
        ends_ns = ends_of(options.out, before, found, now_ns)
    chosen = selected(found.alerts, before.open.keys(), options.count, now_ns)
    return next_state(before, chosen, ends_ns, now_ns)


def _body(options: AlertOptions, alerts: Sequence[SentAlert], is_webhook: bool, now_ns: int) -> Any:
    extra = options.extra_labels
    if is_webhook:
        return webhook_body(alerts, extra, options.report_url)
    return alertmanager_body(alerts, extra, options.report_url, options.expires_ns, now_ns)


def _write_dry(options: AlertOptions, out: TextIO, err: TextIO, now_ns: int) -> None:
    """Write the body of each request, as JSON."""
    is_webhook = options.webhook is not None
    found = found_alerts(options, now_ns)
    for remark in found.remarks:
        _say(err, remark)
    state = _planned(options, TargetState(), found, now_ns)
    for batch in batches(list(state.open.values()), by_name=is_webhook):
        body = _body(options, batch, is_webhook, now_ns)
        out.write(json.dumps(body, indent=2) + "\n")
    count = len(state.open)
    noun = "alert is" if count == 1 else "alerts are"
    _say(err, f"{count:,} {noun} open; nothing was sent.")


def _failed(root: str) -> str:
    return f"the tables of {root} cannot be read"


def _say(err: TextIO, text: str) -> None:
    err.write(f"{text}\n")
    err.flush()
