"""The errors of the data source.

Every message names the option, topic or range concerned. So the text that Spark copies into its own
exception is enough to act on.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

DATA_LOSS_ADVICE: Final = "Set failOnDataLoss=false to go on without them"
"""The advice if messages were removed before the query read them."""


class PulsarSourceError(Exception):
    """Base class of the errors that this package raises."""

    def __str__(self) -> str:
        """The text without control characters of a terminal: servers give reasons."""
        return "\n".join(map(printable, super().__str__().split("\n")))


def printable(text: str) -> str:
    """One line without control characters of a terminal."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c
        for c in text
    )


class OptionsError(PulsarSourceError, ValueError):
    """Options are invalid. ``problems`` lists every problem, not just the first."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))

    def __reduce__(self) -> tuple[type[OptionsError], tuple[tuple[str, ...]]]:
        """Pickle the list of problems: Spark sends the error between Python processes."""
        return (type(self), (self.problems,))


class OffsetError(PulsarSourceError, ValueError):
    """A position or an offset of a checkpoint is malformed."""


class TopicNotFoundError(PulsarSourceError):
    """A topic named in the options does not exist on the cluster."""


class RefusedReadError(PulsarSourceError):
    """The broker refuses to read a topic, and would again: its name is invalid, it is not allowed,
    or the broker is of another version."""


class AccessError(PulsarSourceError):
    """The cluster refuses the credentials, its certificate is not trusted, or a file of credentials
    is unusable."""


class TokenUnavailableError(AccessError):
    """The issuer of tokens does not answer, and may do so later."""


class AdminError(PulsarSourceError):
    """The admin API refused a request, or did not answer within ``adminTimeoutMs``."""


class UnreachableError(AdminError):
    """The admin API did not answer, or was not ready, within ``adminTimeoutMs``."""


class DataLossError(PulsarSourceError):
    """Messages were removed before the query read them, and ``failOnDataLoss`` is true."""


class EncryptedError(PulsarSourceError):
    """Messages are encrypted, and ``failOnDataLoss`` is true. This source has no keys."""


class ReadTimeoutError(PulsarSourceError):
    """Messages remain to be read, but none arrived within ``pollTimeoutMs``."""
