"""A bundle: all looks of a run in one compressed file, from which the run can be judged again.

The file is gzip of JSON, one object a line: first the header, then what the history was told, in
order, and last the end. A run that was killed leaves no end; its looks are there all the same.
Names can be replaced by hashes (:mod:`headgate.agent.name_hashes`).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec
from msgspec import Raw, Struct

from headgate.agent.looks import LimitsLook, ProofLook, QuotaLook, TopicLook
from headgate.agent.name_hashes import NameHashes
from headgate.agent.scout import History
from headgate.base.errors import InputError
from headgate.base.units import MIB

BUNDLE_VERSION: Final = 1
"""Of the format. A reader refuses a later one."""
LINE_BYTES_MAX: Final = 64 * MIB
"""One look at a topic; with thousands of consumers it has some megabytes."""

_LEVEL: Final = 6
_LEFT_OUT: Final = "it did not answer"


class BundleError(InputError):
    """A file is no bundle of looks, or one of a later release. The text is one sentence."""


class Header(Struct, frozen=True, kw_only=True, rename="camel"):
    """What was looked at, and when."""

    headgate_looks: int = BUNDLE_VERSION
    cluster: str
    """The admin URL, or its hash."""
    version: str
    """Of Pulsar."""
    topic: str
    """Full name; empty if the largest backlogs were asked for."""
    started_ns: int
    """Monotonic, as all instants of looks."""
    started_ms: int
    """Since the epoch."""
    is_hashed: bool


class End(Struct, frozen=True, kw_only=True, rename="camel"):
    """When the run was judged, and what it could not see."""

    at_ns: int
    not_seen: list[str]
    is_cut: bool = False
    """Whether the run was killed: then ``at_ns`` is that of the last look."""


class _Line(Struct, frozen=True):
    kind: str
    value: Raw


class _Gone(Struct, frozen=True):
    topic: str
    at_ns: int


class _Unreachable(Struct, frozen=True):
    broker: str
    at_ns: int
    reason: str


class RecordedHistory:
    """A :class:`headgate.agent.scout.History` that writes down what another one is told."""

    def __init__(
        self, history: History, file: BinaryIO, header: Header, hashes: NameHashes | None = None
    ) -> None:
        """``file`` is written and not closed."""
        self._history = history
        self._hashes = hashes
        self._file = gzip.GzipFile(
            filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0
        )
        if hashes is not None:
            header = msgspec.structs.replace(
                header,
                cluster=hashes.name("cluster", header.cluster),
                topic=header.topic and hashes.topic(header.topic),
            )
        self._write("header", header)

    def note_look(self, look: TopicLook) -> None:
        hashes = self._hashes
        self._write("look", look if hashes is None else hashes.topic_look(look))
        self._history.note_look(look)

    def note_proof(self, proof: ProofLook) -> None:
        hashes = self._hashes
        self._write("proof", proof if hashes is None else hashes.proof_look(proof))
        self._history.note_proof(proof)

    def note_limits(self, limits: LimitsLook) -> None:
        hashes = self._hashes
        self._write("limits", limits if hashes is None else hashes.limits_look(limits))
        self._history.note_limits(limits)

    def note_quotas(self, quotas: QuotaLook) -> None:
        hashes = self._hashes
        self._write("quotas", quotas if hashes is None else hashes.quota_look(quotas))
        self._history.note_quotas(quotas)

    def note_gone(self, topic: str, at_ns: int) -> None:
        hashes = self._hashes
        self._write("gone", _Gone(topic if hashes is None else hashes.topic(topic), at_ns))
        self._history.note_gone(topic, at_ns)

    def note_unreachable(self, broker: str, at_ns: int, reason: str) -> None:
        hashes = self._hashes
        told = _Unreachable(broker, at_ns, reason)
        if hashes is not None:
            told = _Unreachable(hashes.name("broker", broker), at_ns, _LEFT_OUT)
        self._write("unreachable", told)
        self._history.note_unreachable(broker, at_ns, reason)

    def suspects(self, count: int, now_ns: int) -> list[str]:
        return self._history.suspects(count, now_ns)

    def proofs_wanted(self, count: int, now_ns: int) -> list[str]:
        return self._history.proofs_wanted(count, now_ns)

    def limits_wanted(self, count: int, now_ns: int) -> list[str]:
        return self._history.limits_wanted(count, now_ns)

    def quotas_wanted(self, count: int, now_ns: int) -> list[str]:
        return self._history.quotas_wanted(count, now_ns)

    def forget(self, before_ns: int) -> None:
        self._history.forget(before_ns)

    def finish(self, at_ns: int, not_seen: list[str]) -> None:
        """Write the end. Sentences on what was not seen are left out of a bundle without names."""
        told = not_seen if self._hashes is None else [f"{len(not_seen)} sentences"] * bool(not_seen)
        self._write("end", End(at_ns=at_ns, not_seen=told))
        self._file.close()

    def _write(self, kind: str, value: object) -> None:
        self._file.write(msgspec.json.encode({"kind": kind, "value": value}) + b"\n")


def replay(file: BinaryIO, name: str, history: History) -> tuple[Header, End]:
    """Tell ``history`` what a bundle has. ``name`` is that of the file, for errors.

    Raises:
        BundleError: it is no bundle of this or an earlier release.
    """
    lines = _lines(file, name)
    header = _header(next(lines, None), name)
    last_ns = header.started_ns
    for line in lines:
        try:
            if line.kind == "end":
                return header, msgspec.json.decode(line.value, type=End)
            last_ns = max(last_ns, _tell(history, line))
        except msgspec.MsgspecError as error:
            raise BundleError(f"{name} is damaged: a {line.kind[:20]!r} in it is none") from error
    return header, End(at_ns=last_ns, not_seen=[], is_cut=True)


def _header(line: _Line | None, name: str) -> Header:
    if line is None or line.kind != "header":
        raise BundleError(f"{name} is no bundle of looks: headgate explain --record makes one")
    version = msgspec.json.decode(line.value, type=dict[str, object]).get("headgateLooks")
    if version != BUNDLE_VERSION:
        raise BundleError(
            f"{name} is a bundle of version {version}; this release reads version {BUNDLE_VERSION}"
        )
    try:
        return msgspec.json.decode(line.value, type=Header)
    except msgspec.MsgspecError as error:
        raise BundleError(f"{name} is damaged: its header is none") from error


def _tell(history: History, line: _Line) -> int:
    """Tell the history one line; when that was."""
    value = line.value
    if line.kind == "look":
        look = msgspec.json.decode(value, type=TopicLook)
        history.note_look(look)
        return look.at_ns
    if line.kind == "proof":
        proof = msgspec.json.decode(value, type=ProofLook)
        history.note_proof(proof)
        return proof.at_ns
    if line.kind == "limits":
        limits = msgspec.json.decode(value, type=LimitsLook)
        history.note_limits(limits)
        return limits.at_ns
    if line.kind == "quotas":
        quotas = msgspec.json.decode(value, type=QuotaLook)
        history.note_quotas(quotas)
        return quotas.at_ns
    if line.kind == "gone":
        gone = msgspec.json.decode(value, type=_Gone)
        history.note_gone(gone.topic, gone.at_ns)
        return gone.at_ns
    if line.kind == "unreachable":
        told = msgspec.json.decode(value, type=_Unreachable)
        history.note_unreachable(told.broker, told.at_ns, told.reason)
        return told.at_ns
    raise msgspec.ValidationError(f"there is no kind {line.kind[:20]!r}")


def _lines(file: BinaryIO, name: str) -> Iterator[_Line]:
    """The lines of a bundle. One that was cut off in the middle ends it."""
    decoder = msgspec.json.Decoder(_Line)
    is_first = True
    with gzip.GzipFile(fileobj=file, mode="rb") as text:
        while True:
            try:
                line = text.readline(LINE_BYTES_MAX)
            except EOFError:
                return
            except (OSError, zlib.error) as error:
                problem = "is no bundle of looks" if is_first else "is damaged"
                raise BundleError(f"{name} {problem}: it is no whole gzip file") from error
            if not line:
                return
            if not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
                return
            try:
                yield decoder.decode(line)
            except msgspec.MsgspecError as error:
                problem = "is no bundle of looks" if is_first else "is damaged"
                raise BundleError(f"{name} {problem}: a line in it is none") from error
            is_first = False
