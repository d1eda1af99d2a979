"""The descriptor in a PROTOBUF_NATIVE definition: JSON around a ``FileDescriptorSet``."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import msgspec
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError
from msgspec import Struct

from headgate.schema.errors import InvalidSchemaError


class _Body(Struct, rename="camel"):
    file_descriptor_set: str
    root_message_type_name: str
    root_file_descriptor_name: str


def root_message(data: bytes) -> str:
    """The full name of the message that the definition describes.

    Raises:
        InvalidSchemaError: the definition cannot be read, or lacks that message.
    """
    try:
        body = msgspec.json.decode(data, type=_Body)
        files = FileDescriptorSet.FromString(
            base64.b64decode(body.file_descriptor_set, validate=True)
        )
    except (msgspec.DecodeError, DecodeError, ValueError, binascii.Error) as error:
        raise InvalidSchemaError(
            f"Invalid schema definition data for PROTOBUF_NATIVE schema: {error}"
        ) from error
    name = body.root_message_type_name
    for file in files.file:
        if file.name == body.root_file_descriptor_name:
            package = f"{file.package}." if file.package else ""
            path = name.removeprefix(package).split(".")
            if name.startswith(package) and _contains(file.message_type, path):
                return name
    raise InvalidSchemaError(
        "protobuf root message descriptor is null, please recheck rootMessageTypeName or "
        "rootFileDescriptorName conf."
    )


def _contains(messages: Iterable[DescriptorProto], path: list[str]) -> bool:
    """Whether a message of that path is there; all parts but the last one contain messages."""
    for part in path:
        found = next((each for each in messages if each.name == part), None)
        if found is None:
            return False
        messages = found.nested_type
    return True
