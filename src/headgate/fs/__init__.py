"""Disk access: the :class:`Fs` protocol and its three implementations."""

from headgate.fs.api import FILE_SYSTEM_NAMES, File, Fs, Lock, Space
from headgate.fs.faulty_fs import FaultyFs, Operation
from headgate.fs.mem_fs import MemFs
from headgate.fs.os_fs import OsFs
from headgate.fs.spare_files import SpareFiles

__all__ = [
    "FILE_SYSTEM_NAMES",
    "FaultyFs",
    "File",
    "Fs",
    "Lock",
    "MemFs",
    "Operation",
    "OsFs",
    "Space",
    "SpareFiles",
]
