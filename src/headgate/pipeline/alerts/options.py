"""The options of ``headgate pipeline alerts``, checked before a table is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors
from headgate.base.units import NS_PER_S
from headgate.pipeline.alerts.alert import OWN_LABELS
from headgate.pipeline.location import checked_root, is_object_store
from headgate.pipeline.time_span import parse_duration

BACKLOG, QUOTA, QUALITY, TELEMETRY = "backlog", "quota", "quality", "telemetry"
KINDS: Final = (BACKLOG, QUOTA, QUALITY, TELEMETRY)
"""Values of ``--kind``."""

COUNT_DEFAULT: Final = 500
COUNT_MAX: Final = 10_000
EVERY_S_MIN: Final = 10
EXPIRES_RUNS_MIN: Final = 2
"""An alert expires no sooner than after so many runs, so that one that fails ends none."""

ALERTMANAGER_PATH: Final = "/api/v2/alerts"

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Credentials:
    """How a target is asked; secrets are in files or come from the environment."""

    token: str | None = field(default=None, repr=False)
    token_path: str | None = None
    """A file with the token, read again for each run."""
    user: str | None = None
    """A name for basic authentication."""
    password: str | None = field(default=None, repr=False)
    password_path: str | None = None
    trust_path: str | None = None
    """PEM file of the certificate authorities to trust; None: the public ones."""

    def check(self) -> None:
        """Raise :class:`InputError` for credentials that exclude each other."""
        faults = InputErrors()
        if self.user is not None and (self.token is not None or self.token_path is not None):
            faults.add("a token and a user (--user) are given; one of them is allowed")
        if self.user is not None and self.password is None and self.password_path is None:
            faults.add(
                f"--user {self.user}: a password is needed, in a file (--password-file) or in "
                "HEADGATE_ALERTS_PASSWORD"
            )
        if self.user is None and self.password_path is not None:
            faults.add("--password-file has no effect without --user")
        if self.user is not None and ":" in self.user:
            faults.add(f"--user {self.user!r}: a name without a colon is allowed")
        faults.raise_any()


NO_CREDENTIALS: Final = Credentials()


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """Which alerts go where."""

    out: str
    """The folder of the tables; it must be there."""
    alertmanagers: tuple[str, ...] = ()
    """URLs of Alertmanagers; all of them get all alerts."""
    webhook: str | None = field(default=None, repr=False)
    """The URL of a webhook; it may be a secret."""
    kinds: tuple[str, ...] = KINDS
    after: str = "5m"
    within: str = "1h"
    count: int = COUNT_DEFAULT
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of all alerts."""
    report_url: str | None = None
    every: str | None = None
    """None: once."""
    expires: str = "15m"
    repeat: str = "4h"
    work: str | None = None
    """The folder of the state; None: ``out``."""
    credentials: Credentials = NO_CREDENTIALS
    is_dry_run: bool = False

    def __post_init__(self) -> None:
        """Raise :class:`InputError` with a line for each option that is not allowed."""
        faults = InputErrors()
        for check in (self._check_folders, self._check_targets, self._check_texts,
                      self._check_times, self.credentials.check):  # fmt: skip
            with faults.collecting():
                check()
        faults.raise_any()

    def _check_folders(self) -> None:
        if self.work is not None and is_object_store(checked_root(self.work)):
            raise InputError(f"--work {self.work} is no folder of this machine; one is needed")
        if is_object_store(checked_root(self.out)) and self.work is None and not self.is_dry_run:
            raise InputError(
                f"{self.out} cannot hold the state of the alerts: name a folder for it that stays "
                "from run to run (--work)"
            )

    def _check_targets(self) -> None:
        faults = InputErrors()
        if self.alertmanagers and self.webhook is not None:
            faults.add("--alertmanager and a webhook are given; one of them is allowed")
        if not self.alertmanagers and self.webhook is None and not self.is_dry_run:
            faults.add(
                "nothing says where the alerts go: --alertmanager URL, --webhook URL, "
                "--webhook-file FILE or --dry-run is needed"
            )
        for url in self.alertmanagers:
            if not _is_plain(url) or urlsplit(url).query or urlsplit(url).fragment:
                faults.add(
                    f"--alertmanager {_shown(url)}: http://HOST:PORT or https://HOST is allowed, "
                    "with a path before /api/v2/alerts if it has one, and without a user"
                )
        if self.webhook is not None and not _is_plain(self.webhook):
            faults.add(
                "--webhook: the URL is not allowed; http://... or https://... with a host is, and "
                "no user in it (--user)"
            )
        if self.report_url is not None and not _is_plain(self.report_url):
            faults.add(
                f"--report-url {_shown(self.report_url)}: http://... or https://... is allowed, "
                "without a user"
            )
        faults.raise_any()

    def _check_texts(self) -> None:
        faults = InputErrors()
        for kind in self.kinds:
            if kind not in KINDS:
                faults.add(f"--kind {kind!r}: {', '.join(KINDS)} are allowed")
        if not 1 <= self.count <= COUNT_MAX:
            faults.add(f"--alerts-max {self.count}: 1 to {COUNT_MAX:,} is allowed")
        for name, value in self.labels:
            if not _LABEL.fullmatch(name) or name in OWN_LABELS or not value:
                faults.add(
                    f"--label {name}={value}: NAME=VALUE is allowed, with letters, digits and _ in "
                    f"the name, which is none of {', '.join(OWN_LABELS)}"
                )
        faults.raise_any()

    def _check_times(self) -> None:
        faults = InputErrors()
        for option, text in (
            ("--after", self.after), ("--within", self.within), ("--repeat", self.repeat),
            ("--expires", self.expires), ("--every", self.every),
        ):  # fmt: skip
            with faults.collecting():
                if text is not None:
                    parse_duration(text, option)
        faults.raise_any()
        every_ns = self.every_ns or EVERY_S_MIN * NS_PER_S
        if every_ns < EVERY_S_MIN * NS_PER_S:
            faults.add(f"--every {self.every}: {EVERY_S_MIN}s or more is allowed")
        if self.expires_ns < EXPIRES_RUNS_MIN * every_ns:
            least = f"twice --every ({self.every})" if self.every else f"{2 * EVERY_S_MIN}s"
            faults.add(f"--expires {self.expires}: {least} or more is allowed")
        faults.raise_any()

    @property
    def after_ns(self) -> int:
        """How long a backlog lasts before it is an alert."""
        return parse_duration(self.after, "--after")

    @property
    def within_ns(self) -> int:
        """How soon a quota is likely reached for an alert."""
        return parse_duration(self.within, "--within")

    @property
    def expires_ns(self) -> int:
        """After how long an alert of an Alertmanager ends unless it is sent again."""
        return parse_duration(self.expires, "--expires")

    @property
    def repeat_ns(self) -> int:
        """How often a webhook gets an alert that stays open."""
        return parse_duration(self.repeat, "--repeat")

    @property
    def every_ns(self) -> int | None:
        """Time between two runs; None: one run."""
        return None if self.every is None else parse_duration(self.every, "--every")

    @property
    def extra_labels(self) -> Mapping[str, str]:
        """Labels of all alerts; a later one of the same name counts."""
        return dict(self.labels)


def alertmanager_url(url: str) -> str:
    """The URL that takes alerts, of an Alertmanager at ``url``."""
    return url.rstrip("/").removesuffix(ALERTMANAGER_PATH) + ALERTMANAGER_PATH


def shown_target(url: str) -> str:
    """A target in messages, without its path, which may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        if parts.port == 0:
            return None
    except ValueError:
        return None
    return parts


def _is_plain(url: str) -> bool:
    """Whether it is a URL of HTTP with a host and without a user."""
    parts = _parts(url)
    return (
        parts is not None
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and "@" not in parts.netloc
        and url.isascii()
        and url.isprintable()
        and " " not in url
    )


def _shown(url: str) -> str:
    """The URL as an error repeats it: never with a user, whose password may be in it."""
    return "URL" if "@" in url else repr(url)
