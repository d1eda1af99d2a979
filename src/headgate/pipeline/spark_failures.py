"""The reason of a failure of Spark, in one sentence."""

from __future__ import annotations

import re
from typing import Final

from headgate.pipeline.failures import joined_causes
from pyspark_pulsar.errors import DATA_LOSS_ADVICE

_PYTHON_ERROR: Final = re.compile(
    r"^(?:  .*\n|(?=[\w.]+(?:Error|Exception|Interrupt): ))"
    r"(?P<name>[A-Za-z_][\w.]*): (?P<text>.+)$",
    re.MULTILINE,
)
"""The last line of a traceback: a name that ends like an error's, or any name after indented lines,
since not every error class is named like one (``_pulsar.Timeout``)."""
_WRAPPERS: Final = ("PythonException", "SparkException", "Py4JJavaError", "Py4JError")
_OWN_ERRORS: Final = re.compile(
    r"\b(?:headgate|pyspark_pulsar)\.[\w.]+(?:Error|Exception): (?P<text>.+)$", re.MULTILINE
)
"""Errors of this project, whose texts need no class name. Spark puts those of the source behind its
own text, on the same line."""
_CLIENT: Final = "_pulsar."
"""Where the errors of Pulsar's client come from; their texts do not say what was being done."""

_COMMAND_LINE_ADVICE: Final = "Without --fail-on-data-loss the job goes on without them"
"""What replaces :data:`DATA_LOSS_ADVICE`, which names the source's option."""


def reason_of(text: str) -> str:
    """The innermost error of a report of Spark or Delta, or the report's first line."""
    text = joined_causes(text)
    own = [match["text"] for match in _OWN_ERRORS.finditer(text)]
    if own:
        return own[-1].replace(DATA_LOSS_ADVICE, _COMMAND_LINE_ADVICE)
    found = [
        match for match in _PYTHON_ERROR.finditer(text) if not match["name"].endswith(_WRAPPERS)
    ]
    if found:
        name, said = found[-1]["name"], found[-1]["text"]
        if name.startswith(_CLIENT):
            return f"a topic cannot be read from its broker: {said}"
        return f"{name.rsplit('.', 1)[-1]}: {said}"
    return text.strip().split("\n", 1)[0] or "Spark gave no reason"


def start_failure(log: str) -> str:
    """Why Spark's Java process ended before it was ready, from its output."""
    if "UnsupportedClassVersionError" in log:
        return "Spark needs Java 17 or newer, and the Java that was found is older"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line or "xception" in line]
    why = (errors or lines or ["its output is empty"])[0]
    return f"Spark's Java process did not start: {why}"
