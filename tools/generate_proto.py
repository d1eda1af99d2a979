"""Turns the files of proto/ into Python packages that are committed.

Run it after every change of a .proto file::

    python tools/generate_proto.py [--check]

``--check`` writes nothing and fails when a committed file differs from what would be written.
It needs grpcio-tools (a development dependency); running Headgate does not.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {"PulsarApi.proto": ROOT / "src/headgate/wire/_generated"}
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


def main() -> int:
    """Write all targets, or with ``--check`` name those that differ. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    check = parser.parse_args().check
    stale = 0
    for proto, folder in TARGETS.items():
        for file_name, text in compile_proto(proto).items():
            path = folder / file_name
            if path.exists() and path.read_text("utf-8") == text:
                continue
            stale += 1
            if not check:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
            print(f"{'differs' if check else 'written'}: {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
