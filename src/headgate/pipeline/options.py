"""The options of the pipeline's jobs, checked before Spark starts. No Spark here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors
from headgate.base.names import InvalidNameError, parse_topic
from headgate.base.web_hosts import names_user
from headgate.pipeline.access_options import NO_ACCESS, AccessOptions, has_tls
from headgate.pipeline.lineage_options import NO_LINEAGE, LineageOptions
from headgate.pipeline.location import checked_root, is_object_store
from headgate.pipeline.spark_options import DEFAULTS, SparkOptions

TELEMETRY_TOPIC: Final = "persistent://headgate/telemetry/samples"
"""Where brokers publish their records by default."""

BROKER_URL: Final = "pulsar://127.0.0.1:6650"
WEB_URL: Final = "http://127.0.0.1:8080"

RETAIN_DAYS_MIN: Final = 2
"""Rows follow from the day before. With less, the hour that has just ended could lack a part of it
when the last of its telemetry arrives."""

TRIGGER_S_MIN: Final = 0.1
"""Least time between two triggers of the query."""

METRICS_HOST: Final = "127.0.0.1"
"""By default, metrics are served to this machine only."""

TOP_MAX: Final = 50
"""Most entries of one list in a report."""

SERVE_PORT: Final = 8081
"""Where ``headgate pipeline serve`` listens: beside a broker on the same machine."""

VACUUM_HOURS: Final = 24
"""How long an unreferenced file stays, for jobs that still read it."""

Format = Literal["table", "json", "csv"]
FORMATS: Final = ("table", "json", "csv")


def _check_format(name: str) -> None:
    if name not in FORMATS:
        raise InputError(
            f"--format {name!r}: {', '.join(FORMATS[:-1])} or {FORMATS[-1]} is allowed"
        )


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Which telemetry topics are read and into which folder.

    ``broker_urls`` and ``web_urls`` are pairs by position; several make one union.
    """

    out: str
    broker_urls: tuple[str, ...] = (BROKER_URL,)
    web_urls: tuple[str, ...] = (WEB_URL,)
    topic: str = TELEMETRY_TOPIC
    fail_on_data_loss: bool = False
    """Whether the job stops if telemetry expired before it was read."""
    access: AccessOptions = NO_ACCESS
    scrapes: str | None = None
    """A folder with texts of ``/metrics``, read instead of the topics; no broker is contacted."""
    files: str | None = None
    """A folder with files of telemetry records, read in the same way."""
    work: str | None = None
    """A folder for the job's own files, checkpoints and Spark's log; None: ``out``."""
    spark: SparkOptions = DEFAULTS
    lineage: LineageOptions = NO_LINEAGE

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for URLs of another form or different in number.

        Also for options of TLS where no URL has it. One error lists all faults.
        """
        faults = InputErrors()
        with faults.collecting():
            _check_folders(self.out, self.work)
        if len(self.broker_urls) != len(self.web_urls) or not self.broker_urls:
            faults.add(
                f"--broker-url is given for {len(self.broker_urls)} and --admin-url for "
                f"{len(self.web_urls)}: every broker needs one of each, in the same order"
            )
        for option, schemes, port, urls in (
            ("--broker-url", ("pulsar", "pulsar+ssl"), 6650, self.broker_urls),
            ("--admin-url", ("http", "https"), 8080, self.web_urls),
        ):
            forms = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)
            for url in urls:
                if names_user(url):
                    faults.add(f"{option} has a URL with a user or password: {forms} is allowed")
                elif not _is_url(url, schemes):
                    example = f"{schemes[0]}://localhost:{port}"
                    faults.add(f"{option} {url!r}: {forms} is allowed, such as {example}")
        try:
            parse_topic(self.topic)
        except InvalidNameError as error:
            faults.add(f"--topic: {error}")
        with faults.collecting():
            self.access.check((*self.broker_urls, *self.web_urls))
        if self.scrapes is not None and self.files is not None:
            faults.add("--scrapes and --files exclude each other: leave one out")
        faults.raise_any()

    @property
    def folder(self) -> str | None:
        """The folder that is read instead of the topics; None without one."""
        return self.scrapes if self.files is None else self.files

    def source_options(self, broker_url: str, web_url: str) -> dict[str, str]:
        """The options of ``format("pulsar")`` for one of the brokers."""
        options = {"service.url": broker_url, "admin.url": web_url, "topic": self.topic}
        is_tls = has_tls(broker_url) or has_tls(web_url)
        return options | self.access.source_options(is_tls=is_tls)


def _check_retention(days: int | None) -> None:
    if days is not None and days < RETAIN_DAYS_MIN:
        raise InputError(f"--retain {days}: at least {RETAIN_DAYS_MIN} days are allowed")


def _check_folders(out: str, work: str | None) -> None:
    if not out:
        raise InputError("--out is empty; a folder for the tables is needed, such as tables")
    checked_root(out)
    if work is not None and is_object_store(checked_root(work)):
        raise InputError(f"--work {work} is no folder of this machine; the job needs one")


def _is_url(url: str, schemes: tuple[str, ...]) -> bool:
    """Whether ``url`` has one of the schemes, hosts, and ports that are numbers."""
    scheme, separator, rest = url.partition("://")
    if scheme not in schemes or not separator:
        return False
    hosts, _, path = rest.partition("/")
    if scheme.startswith("pulsar") and path:
        return False
    for host in hosts.split(",") if scheme.startswith("pulsar") else [hosts]:
        try:
            parts = urlsplit(f"//{host}")
            if not parts.hostname or parts.port == 0:
                return False
        except ValueError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class AttributeOptions:
    """Read what the topics hold now, and attribute the backlogs of a range."""

    source: SourceOptions
    since: str | None = None
    """ISO 8601 with offset, or an age such as ``2h``; None: from the beginning."""
    until: str | None = None
    """As ``since``; None: up to now."""
    format: Format = "table"
    width: int = 100
    """Characters in a line of the table, names excepted: they are never broken."""
    color: bool = False
    """Whether the table may have colours."""
    reads: bool = True
    """Whether the topics are read first; if not, the tables are judged as they are."""
    is_about_producers: bool = False
    """Whether topics are judged, by what held their producers, instead of subscriptions."""

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for an unknown format, or files that are not to be read."""
        _check_format(self.format)
        if self.source.folder is not None and not self.reads:
            option = "--scrapes" if self.source.files is None else "--files"
            raise InputError(f"{option} and --no-read exclude each other: leave one out")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Continue where the last run stopped, and keep running."""

    source: SourceOptions
    trigger_s: float = 5.0
    """Time between two triggers of the query."""
    metrics_port: int | None = None
    """Where Prometheus metrics are served; 0: at a free port; None: nowhere."""
    metrics_host: str = METRICS_HOST
    retain_days: int | None = None
    """Rows older than this are dropped, once an hour; None: none."""

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for files, a trigger that is too short or not finite, or
        retention that is too short."""
        _check_retention(self.retain_days)
        if self.source.folder is not None:
            option = "--scrapes" if self.source.files is None else "--files"
            raise InputError(f"{option} are read once; a stream reads telemetry topics")
        if not (math.isfinite(self.trigger_s) and self.trigger_s >= TRIGGER_S_MIN):
            raise InputError(
                f"--trigger {self.trigger_s:g}: seconds from {TRIGGER_S_MIN:g} on are allowed, "
                "such as 5"
            )


@dataclass(frozen=True, slots=True)
class FolderOptions:
    """A query over the tables; no topic is read."""

    out: str
    """The folder of the tables; it must be there."""
    since: str | None = None
    """As in :class:`AttributeOptions`."""
    until: str | None = None
    format: Format = "table"
    width: int = 100
    color: bool = False
    spark: SparkOptions = DEFAULTS

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for an unknown format, or a folder that cannot hold tables."""
        checked_root(self.out)
        _check_format(self.format)


@dataclass(frozen=True, slots=True)
class ForecastOptions:
    """Forecast when quotas will be reached, or score earlier forecasts."""

    folder: FolderOptions
    at: str | None = None
    """Instant of the forecast; None: the newest minute of the tables."""
    is_score: bool = False
    """Score the forecasts of the range instead."""
    within: str | None = None
    """A duration: count the quotas that are likely reached sooner."""


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """Replay other settings over the range."""

    folder: FolderOptions
    grid: str
    """File of the settings to try."""
    run_id: str | None = None
    """Name of the run; None: a new one."""
    lineage: LineageOptions = NO_LINEAGE


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """Queries of SQL over the tables, which see only rows of the range."""

    folder: FolderOptions
    count: int | None = None
    """Most rows; None: all, as a table a screen or two."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """One page about a range."""

    out: str
    """The folder of the tables; it must be there."""
    since: str | None = None
    """As in :class:`AttributeOptions`."""
    until: str | None = None
    html: str | None = None
    """Where the page is written; None: ``report.html`` in the folder."""
    top: int = 10
    """Most entries of each list."""

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for a number out of range, or a page without a file."""
        if is_object_store(checked_root(self.out)) and self.html is None:
            raise InputError(f"{self.out} cannot hold the page; name a file for it (--html)")
        if not 1 <= self.top <= TOP_MAX:
            raise InputError(f"--count {self.top}: 1 to {TOP_MAX} is allowed")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The page over the tables."""

    out: str
    """The folder of the tables; it must be there."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = SERVE_PORT
    """0: a free one."""
    is_insecure_allowed: bool = False
    """Whether other machines may reach it, though it asks for no credentials."""

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for a folder that cannot hold tables, or no address."""
        checked_root(self.out)
        if not self.host:
            raise InputError("--address is empty; an address of this machine is needed")


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Compact, vacuum and drop old rows of a folder."""

    out: str
    """The folder of the tables; it must be there."""
    retain_days: int | None = None
    """Rows older than this are dropped; None: none."""
    vacuum: bool = False
    """Whether files that no table refers to are deleted."""
    vacuum_hours: int = VACUUM_HOURS
    """Unreferenced files younger than this stay."""
    is_dry_run: bool = False
    """Change nothing; print what would be done."""

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for times out of range."""
        checked_root(self.out)
        _check_retention(self.retain_days)
        if self.vacuum_hours < 0:
            raise InputError(f"--vacuum-hours {self.vacuum_hours}: at least 0 is allowed")


@dataclass(frozen=True, slots=True)
class UpgradeOptions:
    """Bring the tables of an earlier release to this one."""

    out: str
    """The folder of the tables; it must be there."""
    is_dry_run: bool = False
    """Change nothing; print what would be done."""
    spark: SparkOptions = DEFAULTS

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for a folder that cannot hold tables."""
        checked_root(self.out)
