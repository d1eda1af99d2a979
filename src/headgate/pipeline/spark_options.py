"""What a user sets of Spark, and what follows from the machine for the rest. No Spark here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors
from headgate.base.units import GIB, KIB, MIB

CORES_MAX: Final = 1_024
DRIVER_MEMORY_MIN: Final = 512 * MIB
"""With less, Spark itself does not start: it keeps 300 MiB, and wants half as much again."""
_MEMORY_DEFAULT_MAX: Final = 16 * GIB
_MEMORY_PART: Final = 4
"""Java gets so little of the machine's memory by default because the Python workers need more."""
_MEMORY: Final = re.compile(r"([0-9]{1,9})([kmgt]?)b?", re.IGNORECASE)
_MEMORY_UNITS: Final[Mapping[str, int]] = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": KIB * GIB}
_KEY: Final = re.compile(r"spark\.[A-Za-z0-9_.-]+")
_OWN: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "the tables have UTC",
    "spark.master": "the variable MASTER sets it, or spark-submit",
    "spark.driver.memory": "--driver-memory sets it",
    "spark.app.name": "the command has its own",
    "spark.remote": "a Spark Connect server cannot run it; spark-submit brings it to a cluster",
    "spark.api.mode": "it needs Spark's own driver; spark-submit brings it to a cluster",
}
"""Settings that are not the user's here, with the reason."""

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"

PARTITIONS_PER_CORE: Final = 2
"""A few more partitions than cores balance tasks of different length."""
_PARTITIONS_MIN: Final = 4
_PARTITION_BYTES: Final = 16 * MIB
"""Bytes of Parquet files for each partition of a shuffle: some hundred MiB of rows."""
_PARTITIONS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """``--cores``, ``--driver-memory`` and ``--spark-conf``."""

    cores: int | None = None
    """Cores of this machine to use; None: all."""
    driver_memory: str | None = None
    """The heap of Spark's Java process, such as ``4g``; None: a part of the machine's memory."""
    conf: tuple[str, ...] = ()
    """Settings of Spark, each as ``KEY=VALUE``; a later one of the same key counts."""

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for values that Spark would refuse, or not obey."""
        faults = InputErrors()
        if self.cores is not None and not 1 <= self.cores <= CORES_MAX:
            faults.add(f"--cores {self.cores}: 1 to {CORES_MAX:,} is allowed")
        with faults.collecting():
            if self.driver_memory is not None:
                _check_memory(self.driver_memory)
        for text in self.conf:
            with faults.collecting():
                _check_setting(text)
        faults.raise_any()

    def settings(self) -> dict[str, str]:
        """What ``conf`` says, by key."""
        return dict(_parts(text) for text in self.conf)

    def check_submitted(self) -> None:
        """Raise :class:`InputError` for what only ``spark-submit`` itself can set."""
        faults = InputErrors()
        if self.cores is not None:
            faults.add(
                "--cores is for this machine; spark-submit has --executor-cores and "
                "--total-executor-cores"
            )
        if self.driver_memory is not None:
            faults.add("--driver-memory comes too late here: give it to spark-submit")
        faults.raise_any()


DEFAULTS: Final = SparkOptions()
"""Nothing is set."""


def _parts(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key.strip(), value.strip()


def _check_memory(text: str) -> None:
    match = _MEMORY.fullmatch(text)
    size = 0 if match is None else int(match[1]) * _MEMORY_UNITS[match[2].lower()]
    if size < DRIVER_MEMORY_MIN:
        raise InputError(f"--driver-memory {text}: 512m or more is allowed, such as 4g")


def _check_setting(text: str) -> None:
    key, value = _parts(text)
    if not _KEY.fullmatch(key) or not value or "=" not in text:
        raise InputError(
            f"--spark-conf {text!r}: KEY=VALUE is allowed, such as spark.sql.shuffle.partitions=64"
        )
    if key in _OWN:
        raise InputError(f"--spark-conf {key} is not for this command: {_OWN[key]}")


def check_no_connect(environment: Mapping[str, str]) -> None:
    """Check that no variable asks for Spark Connect.

    The jobs need Spark's driver in this process: its Java, its streaming queries, and its files.

    Raises:
        InputError: one does; the text names it.
    """
    for name, value in (
        ("SPARK_REMOTE", environment.get("SPARK_REMOTE", "")),
        ("MASTER", _if_connect(environment.get("MASTER", ""))),
        ("SPARK_API_MODE", _if_connect(environment.get("SPARK_API_MODE", ""))),
    ):
        if value:
            # A URL of a server may have a token in it.
            shown = value.partition(";")[0]
            raise InputError(
                f"{name}={shown} asks for Spark Connect, which cannot run headgate pipeline: unset"
                f" {name} to use Spark on this machine, or bring the command to a cluster with"
                " spark-submit"
            )


def _if_connect(text: str) -> str:
    is_connect = text.lower().startswith("sc://") or text.lower() == "connect"
    return text if is_connect else ""


def machine_settings(cores: int, memory_bytes: int) -> dict[str, str]:
    """Settings for Spark on one machine with so many cores and so much memory."""
    heap = min(max(memory_bytes // _MEMORY_PART, GIB), _MEMORY_DEFAULT_MAX)
    return {
        SHUFFLE_PARTITIONS: str(shuffle_partitions(cores, 0)),
        "spark.driver.memory": f"{heap // MIB}m",
    }


def shuffle_partitions(cores: int, input_bytes: int) -> int:
    """How many partitions a shuffle on one machine has, over files of so many bytes.

    Adaptive execution joins small ones and never splits one, so there must be enough.
    """
    least = max(_PARTITIONS_MIN, PARTITIONS_PER_CORE * cores)
    return min(max(least, -(-input_bytes // _PARTITION_BYTES)), max(least, _PARTITIONS_MAX))
