"""What went wrong in a Spark job, in one sentence. No Spark here."""

from __future__ import annotations

import re
from typing import Final

from headgate.base.errors import HeadgateError

_PYTHON_ERROR: Final = re.compile(
    r"^(?P<name>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)): (?P<text>.+)$", re.MULTILINE
)
_WRAPPERS: Final = ("PythonException", "SparkException", "Py4JJavaError", "Py4JError")


class PipelineError(HeadgateError):
    """A job failed; its cause, the engine's own error, has the whole story."""


def reason_of(text: str) -> str:
    """The innermost error of an engine's many-line report, or its first line."""
    found = [
        match for match in _PYTHON_ERROR.finditer(text)
        if not match["name"].endswith(_WRAPPERS)
    ]
    if found:
        name = found[-1]["name"].rsplit(".", 1)[-1]
        return f"{name}: {found[-1]['text']}"
    return text.strip().split("\n", 1)[0] or "the engine gave no reason"
