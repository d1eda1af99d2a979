"""What can go wrong in the source, by whose fault it is.

Every message names the option, topic or range concerned, so that the text which Spark copies into
its own exception is enough to act on.
"""

from __future__ import annotations

from collections.abc import Sequence


class PulsarSourceError(Exception):
    """Root of all errors that this package raises on purpose."""


class OptionsError(PulsarSourceError, ValueError):
    """The caller's options are wrong. ``problems`` lists every fault found, not just the first."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))

    def __reduce__(self) -> tuple[type[OptionsError], tuple[tuple[str, ...]]]:
        """Pickle by the list of problems: the error travels between Python processes."""
        return (type(self), (self.problems,))


class OffsetError(PulsarSourceError, ValueError):
    """A position text or a checkpoint's offset cannot be read."""


class TopicNotFoundError(PulsarSourceError):
    """A topic named in the options does not exist on the cluster."""


class AccessError(PulsarSourceError):
    """The cluster refuses the credentials or has none that are trusted, or ours cannot be read."""


class AdminError(PulsarSourceError):
    """The admin service refused a request or could not be reached within ``adminTimeoutMs``."""


class UnreachableError(AdminError):
    """The admin service did not answer, or was not ready, within ``adminTimeoutMs``."""


class DataLossError(PulsarSourceError):
    """Messages that the query had not read are gone; raised while ``failOnDataLoss`` is true."""


class ReadTimeoutError(PulsarSourceError):
    """Messages are due but none arrived within ``pollTimeoutMs``."""
