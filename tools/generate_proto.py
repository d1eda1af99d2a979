"""Turns the files of proto/ into Python packages that are committed.

Run it after every change of a .proto file::

    python tools/generate_proto.py [--check]

``--check`` writes nothing and fails when a committed file differs from what would be written.
It needs grpcio-tools (a development dependency); running Headgate does not.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from committed_files import ROOT, write_or_check

TARGETS = {"PulsarApi.proto": Path("src/headgate/wire/_generated")}
"""Which package each .proto file is compiled into."""

_NOT_AN_IDENTIFIER = re.compile(r"^ +None: .*\n", re.MULTILINE)
"""Schema.Type has a value called None: legal in a descriptor, a syntax error in a stub."""

_ENUM_CLASS = re.compile(r"^ *class (\w+)\(int, metaclass=", re.MULTILINE)


def compile_proto(name: str) -> dict[str, str]:
    """Compile ``proto/<name>``: file name to content of the Python module and its stub."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        arguments = ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}"]
        if protoc.main([*arguments, f"--pyi_out={folder}", name]) != 0:
            raise SystemExit(f"protoc refused proto/{name}")
        written = {path.name: path.read_text("utf-8") for path in Path(folder).iterdir()}
    return {
        file_name: _mend_stub(text) if file_name.endswith(".pyi") else text
        for file_name, text in written.items()
    }


def _mend_stub(text: str) -> str:
    """Make a stub say what upb does: an enum field holds a plain ``int`` and accepts any.

    So our own IntEnums can be assigned, and what is read can be looked up in tables of ``int``.
    """
    text = _NOT_AN_IDENTIFIER.sub("", text)
    for name in set(_ENUM_CLASS.findall(text)):
        text = re.sub(rf"^( +\w+): (\w+\.)?{name}$", r"\1: int", text, flags=re.MULTILINE)
        text = re.sub(rf"_Union\[(\w+\.)?{name}, str\]", "_Union[int, str]", text)
    return '# mypy: disable-error-code="type-arg,valid-type"\n' + text


def generate() -> dict[Path, str]:
    """Every generated file's path below the repository root, and its text."""
    return {
        folder / file_name: text
        for proto, folder in TARGETS.items()
        for file_name, text in compile_proto(proto).items()
    }


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, generate))
