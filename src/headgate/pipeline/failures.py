"""Failures of a job, each in one sentence. No Spark here."""

from __future__ import annotations

import re
from typing import Final

from headgate.base.errors import HeadgateError

_CAUSE: Final = re.compile(r"\n\s*(?:\x1b\[\d*m)*↳(?:\x1b\[\d*m)*\s*")
"""The mark before each cause in an error of delta-rs."""
_DOCUMENT: Final = re.compile(
    r"<\?xml.*?(?:<Message>(?P<said>[^<]*)</Message>.*?)?</Error>", re.DOTALL
)
"""A response of S3 with the reason of a refusal."""
_REQUEST_ID: Final = re.compile(r" \([^()]*Request ID: [^)]*\)")


class PipelineError(HeadgateError):
    """A job failed; the error of Spark, Delta or the disk is its cause."""


def joined_causes(text: str) -> str:
    """The error of a storage library in one line, with its causes."""
    joined = _DOCUMENT.sub(lambda found: found["said"] or "no reason given", text)
    return _REQUEST_ID.sub("", _CAUSE.sub(": ", joined))
