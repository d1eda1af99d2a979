"""The location of a folder of tables: a path, or a prefix in a bucket of S3. Text only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from headgate.base.errors import InputError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_S3: Final = "s3://"
_ESCAPE: Final = re.compile("%[0-9A-Fa-f]{2}")
_URL_MARKS: Final = frozenset("?#%")
_LOCKLESS: Final = frozenset(
    {"hdfs", "viewfs", "gs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "cosn"}
)
"""File systems that Spark users know, for which there is no lock (decision 0014)."""
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def is_object_store(root: str) -> bool:
    """Whether the root is in a bucket of S3, which has no folders, locks or appends."""
    return root.startswith(_S3)


def checked_root(root: str) -> str:
    """``root``, after a check that it is a path or ``s3://BUCKET/PREFIX``.

    Raises:
        InputError: it is anything else, or has characters that the libraries below read
            differently; the text does not repeat what may be a key.
    """
    scheme = _SCHEME.match(root)
    if scheme is None:
        # delta-rs would put a table's log into another folder than its files.
        if (escape := _ESCAPE.search(str(Path(root).absolute()))) is not None:
            raise InputError(
                f"tables cannot be in {root}: {escape[0]!r} in a path is taken for one character; "
                "any other name is allowed"
            )
        return root
    if scheme[0] != _S3:
        raise InputError(
            f"tables cannot be in {scheme[0]}...: a path or s3://BUCKET/PREFIX is allowed"
            f"{_hint(scheme[1].lower())}"
        )
    bucket, _, prefix = root.removeprefix(_S3).rstrip("/").partition("/")
    if "@" in bucket:
        raise InputError(
            "a URL of S3 names no user and no key: s3://BUCKET/PREFIX is allowed, and keys come "
            "from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
        )
    if not _BUCKET.fullmatch(bucket):
        raise InputError(
            f"{bucket!r} is no name of a bucket: 3 to 63 lower-case letters, digits, dots and "
            "hyphens are allowed, as in s3://BUCKET/PREFIX"
        )
    names = prefix.split("/") if prefix else []
    if any(name in ("", ".", "..") or set(name) & _URL_MARKS for name in names):
        raise InputError(
            f"{prefix!r} is no prefix in a bucket: names without ?, # and %, and with / between "
            "them, are allowed, as in s3://BUCKET/PREFIX"
        )
    return root


def _hint(scheme: str) -> str:
    """What is missing for a scheme, or what to write in its place."""
    if scheme == "file":
        return "; write the path without file://"
    if scheme in ("s3a", "s3n"):
        return f"; Spark's {scheme}:// is s3:// here"
    if scheme in _LOCKLESS:
        return (
            f"; jobs that write at the same time need a lock, and {scheme}:// has none in Headgate "
            "(mounted as a file system with flock, the same storage can be used by its path)"
        )
    return ""


def local_url(path: str) -> str:
    """A path of this machine as Spark reads it whatever ``fs.defaultFS`` says: with ``file://``.

    Nothing in it is quoted: Hadoop takes what stands behind the scheme as it is.
    """
    return f"file://{Path(path).absolute()}"


def resolved_root(root: str) -> str:
    """The root as an absolute path, or as a URL without a slash at the end.

    Raises:
        InputError: as :func:`checked_root`.
    """
    if is_object_store(checked_root(root)):
        return root.rstrip("/")
    return str(Path(root).resolve())


def bucket_and_prefix(root: str) -> tuple[str, str]:
    """The bucket and the prefix of a root in S3, without slashes at their ends."""
    bucket, _, prefix = root.removeprefix(_S3).strip("/").partition("/")
    return bucket, prefix
