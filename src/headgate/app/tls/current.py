"""The contexts of TLS in force, and what the broker reports of their certificate."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from headgate.app.tls.files import ChangedMeanwhileError, Contents, Loaded, TlsFiles, load
from headgate.app.tls.profile import PortContexts, Profile, binary_profile, web_profile
from headgate.base.errors import InputError
from headgate.base.units import S_PER_DAY
from headgate.broker.tls_status import TlsStatus
from headgate.policy.settings import Settings
from headgate.security.certificates import CertificateFacts

logger = logging.getLogger("headgate.tls")

EXPIRY_DAYS: Final = (1, 7, 30)
"""The broker logs that its certificate ends when so many days are left."""

PROBLEM_DAYS: Final = 7
"""With so many days left, or fewer, health says so."""

_READS_MAX: Final = 3
"""Times that a start reads files which change meanwhile."""


class CurrentTls:
    """The contexts for new connections. Those that are open keep theirs."""

    def __init__(self, files: TlsFiles, profiles: tuple[Profile, Profile], loaded: Loaded) -> None:
        """For :meth:`open`. The profiles are those of the binary protocol and of the web."""
        self._files = files
        self._profiles = profiles
        self._loaded = loaded
        self._failure = ""
        """Why the newest files are not in force; empty if they are."""
        self._warned_days: int | None = None
        """The bound in :data:`EXPIRY_DAYS` that the last log line was about."""

    @classmethod
    def open(cls, settings: Settings) -> CurrentTls | None:
        """Load what the settings name; None if no port of TLS is set. Blocks.

        Raises:
            InputError: a setting or a file cannot be used.
        """
        if settings.brokerServicePortTls < 0 and settings.webServicePortTls < 0:
            return None
        files = TlsFiles.of(settings)
        profiles = (binary_profile(settings), web_profile(settings))
        for _ in range(_READS_MAX - 1):
            try:
                return cls(files, profiles, load(files, profiles, files.read()))
            except ChangedMeanwhileError:
                continue
        return cls(files, profiles, load(files, profiles, files.read()))

    def binary(self, name: str) -> PortContexts:
        """Those of the binary protocol, for a client that asks for the host ``name`` (SNI)."""
        return self._loaded.contexts_of(name)[0]

    def web(self, name: str) -> PortContexts:
        """Those of the web port, for a client that asks for the host ``name`` (SNI)."""
        return self._loaded.contexts_of(name)[1]

    # -- looking for changes -----------------------------------------------------------------

    def read_changed(self) -> Loaded | None:
        """What the files have now; None if nothing new. Blocks, and changes nothing.

        Raises:
            InputError: they have changed and cannot be used.
        """
        contents: Contents = self._files.read()
        if contents == self._loaded.contents:
            return None
        return load(self._files, self._profiles, contents)

    def take(self, loaded: Loaded | None, status: TlsStatus, now_s: float) -> None:
        """Put what :meth:`read_changed` returned into force, at the wall clock's ``now_s``."""
        if self._failure and loaded is None:
            logger.warning("the files of TLS are as before: they can be used again")
        self._failure = ""
        if loaded is not None:
            self._loaded = loaded
            self._warned_days = None
            status.reloads += 1
            facts = first_to_end(loaded.facts, now_s)
            logger.info(
                "new files of TLS are in force for new connections: %s, valid for %s",
                facts.subject,
                _left(facts.expires_at_s - now_s),
            )
        self.report(status, now_s)

    def keep(self, error: InputError, status: TlsStatus, now_s: float) -> None:
        """The files have changed and cannot be used: those of before stay in force."""
        if isinstance(error, ChangedMeanwhileError):
            return
        status.reload_failures += 1
        if str(error) != self._failure:
            self._failure = str(error)
            logger.error(
                "changed files of TLS cannot be used, and those of before stay in force: %s", error
            )
        self.report(status, now_s)

    def report(self, status: TlsStatus, now_s: float) -> None:
        """Write the state into ``status``, and log a certificate that ends soon. Of several the
        first to end counts."""
        facts = first_to_end(self._loaded.facts, now_s)
        status.expires_at_s = facts.expires_at_s
        days = expiry_bound(facts, now_s)
        validity = validity_sentence(facts, now_s)
        if days is not None and days != self._warned_days:
            logger.warning("%s", validity)
        self._warned_days = days
        failure = (
            f"changed files of TLS cannot be used, and those of before stay in force: "
            f"{self._failure}"
            if self._failure
            else ""
        )
        soon = validity if days is not None and days <= PROBLEM_DAYS else ""
        status.problem = "; ".join(text for text in (failure, soon) if text)


def first_to_end(facts: Iterable[CertificateFacts], now_s: float) -> CertificateFacts:
    """The certificate that clients refuse first: one that is not valid yet, or that ends first."""
    return min(facts, key=lambda each: (each.begins_at_s <= now_s, each.expires_at_s))


def expiry_bound(facts: CertificateFacts, now_s: float) -> int | None:
    """The least of :data:`EXPIRY_DAYS` that a certificate is not longer valid; 0 if it is not
    valid now, None if it is valid longer than all of them."""
    if not facts.begins_at_s <= now_s < facts.expires_at_s:
        return 0
    left_s = facts.expires_at_s - now_s
    return next((days for days in EXPIRY_DAYS if left_s <= days * S_PER_DAY), None)


def validity_sentence(facts: CertificateFacts, now_s: float) -> str:
    """Whether the certificate is valid, and how long."""
    if now_s < facts.begins_at_s:
        return (
            f"the certificate {facts.subject} is not valid yet: it begins in "
            f"{_left(facts.begins_at_s - now_s)}"
        )
    if now_s >= facts.expires_at_s:
        return (
            f"the certificate {facts.subject} has expired "
            f"{_left(now_s - facts.expires_at_s)} ago: clients refuse it"
        )
    return f"the certificate {facts.subject} expires in {_left(facts.expires_at_s - now_s)}"


def _left(seconds: float) -> str:
    days, rest = divmod(int(seconds), S_PER_DAY)
    return f"{days} days" if days > 1 else f"{(days * S_PER_DAY + rest) // 3_600} hours"
