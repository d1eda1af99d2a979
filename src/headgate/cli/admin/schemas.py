"""The verbs of ``headgate admin schemas``, and those of policies about schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from headgate.base.schema_types import AutoUpdateStrategy, CompatibilityStrategy
from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.errors import AdminUsageError
from headgate.cli.admin.output import as_lines
from headgate.cli.admin.values import int64
from headgate.cli.admin.verbs import (
    NAMESPACE_NAME,
    NAMESPACE_PATH,
    TOPIC_NAME,
    TOPIC_PATH,
    Parameter,
    Server,
    Values,
    Verb,
    echo,
    option,
    send,
    show,
    switch,
    target,
)

_VERSION: Final = option("--version -v", "version", int64, "This version.")
_ALL: Final = switch("--all-version -a", "all", "All versions.")
_FILE: Final = option(
    "--filename -f", "schemaFileName", str, "A file of JSON: type, schema, properties.",
    required=True,
)  # fmt: skip
_FORCE: Final = switch("--force -f", "force", "Also forget the numbers of the versions.")
_ENABLE: Final = switch("--enable -e", "enable", "Switch it on.")
_DISABLE: Final = switch("--disable -d", "disable", "Switch it off.")
_APPLIED: Final = switch("--applied -ap", "applied", "Show the value in force.")
_PARTS: Final = ("type", "schema", "properties")


def _path(values: Values, rest: str, *query: str) -> str:
    topic = values["topicName"]
    path = f"/admin/v2/schemas/{{namespaceName}}/{{local}}/{rest}"
    return target(path, {**values, "namespaceName": topic.namespace, "local": topic.local}, query)


def get_schema(server: Server, values: Values) -> None:
    """Print the latest version, another one, or all."""
    version, wants_all = values["version"], values["all"]
    if version is not None and wants_all:
        raise AdminUsageError(
            "Only one or neither of --version and --all-version can be specified."
        )
    if version is not None and version < 0:
        raise AdminUsageError(f"Option --version must be greater than 0, but found {version}")
    if wants_all:
        answer = server.get(_path(values, "schemas")) or {}
        found = answer.get("getSchemaResponses", [])
        echo(as_lines([_json(_info(values, each)) for each in found]))
    elif version is not None:
        answer = server.get(_path(values, f"schema/{version}")) or {}
        echo(_json(_info(values, answer)))
    else:
        answer = server.get(_path(values, "schema")) or {}
        echo(_json({"version": answer.get("version"), "schemaInfo": _info(values, answer)}))


def get_metadata(server: Server, values: Values) -> None:
    """Print the numbers of the versions."""
    echo(_json(server.get(_path(values, "metadata"))))


def upload(server: Server, values: Values) -> None:
    """Add the definition in a file."""
    server.ask("POST", _path(values, "schema"), _file(values))


def check_compatibility(server: Server, values: Values) -> None:
    """End with an error if the definition in a file cannot be added."""
    server.ask("POST", _path(values, "compatibility"), _file(values))


def delete_schema(server: Server, values: Values) -> None:
    """Delete all versions."""
    server.ask("DELETE", _path(values, "schema", "force={force}"))


def _info(values: Values, answer: Mapping[str, Any]) -> dict[str, Any]:
    """A version as Pulsar's tool prints it: a definition in JSON as JSON."""
    schema = answer.get("data", "")
    with suppress(ValueError):
        schema = json.loads(schema)
    shown = {name: answer.get(name) for name in ("type", "timestamp", "properties")}
    return {"name": values["topicName"].local, "schema": schema, **shown}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2)


def _file(values: Values) -> dict[str, Any]:
    """The body in the file that the command line names.

    Raises:
        AdminUsageError: it cannot be read, or is no JSON object.
    """
    path = Path(values["schemaFileName"])
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AdminUsageError(f"Schema file {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise AdminUsageError(f"Schema file {path} is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise AdminUsageError(f"Schema file {path} is no JSON object with {', '.join(_PARTS)}")
    return {key: body[key] for key in _PARTS if key in body}


def _one_of_both(values: Values) -> bool:
    if values["enable"] == values["disable"]:
        raise AdminUsageError("Need to specify either --enable or --disable")
    return bool(values["enable"])


def strategy(text: str) -> str:
    """A strategy by its name, in capitals or not."""
    allowed = [each.value for each in CompatibilityStrategy]
    if text.upper() not in allowed:
        raise click.BadParameter(f"expected one of [{', '.join(allowed)}] but was '{text}'")
    return text.upper()


def _older_strategy(text: str) -> str:
    for each in AutoUpdateStrategy:
        if each.value.lower() == text.lower():
            return each.value
    allowed = ", ".join(each.value for each in AutoUpdateStrategy)
    raise click.BadParameter(f"expected one of [{allowed}] but was '{text}'")


def _older_body(values: Values) -> str:
    if values["disabled"]:
        return AutoUpdateStrategy.AUTO_UPDATE_DISABLED.value
    if values["compatibility"] is None:
        raise AdminUsageError("Either --compatibility or --disabled must be specified")
    return str(values["compatibility"])


def _strategy_body(values: Values) -> str:
    return str(values["strategy"])


_MEANING: Final = (
    "Which definitions may follow those of a topic: FULL, BACKWARD, FORWARD, one of these with "
    "_TRANSITIVE, ALWAYS_COMPATIBLE, ALWAYS_INCOMPATIBLE or UNDEFINED."
)
_NAMESPACE_STRATEGY: Final = option(
    "--compatibility -c", "strategy", strategy, _MEANING, required=True
)
_TOPIC_STRATEGY: Final = option("--strategy -s", "strategy", strategy, _MEANING, required=True)

_STRATEGY_PATH: Final = f"{NAMESPACE_PATH}/schemaCompatibilityStrategy"
_OLDER_PATH: Final = f"{NAMESPACE_PATH}/schemaAutoUpdateCompatibilityStrategy"
_AUTO_PATH: Final = f"{NAMESPACE_PATH}/isAllowAutoUpdateSchema"


def _validation_verbs(name: Parameter, path: str) -> tuple[Verb, ...]:
    """The verbs of namespaces or of topics about producers without a schema."""
    path = f"{path}/schemaValidationEnforced"
    return (
        Verb("get-schema-validation-enforce", "Show whether producers need a schema.",
             (name, _APPLIED), show(path, query=("applied={applied}",))),
        Verb("set-schema-validation-enforce", "Set whether producers need a schema.",
             (name, _ENABLE, _DISABLE), send("POST", path, body=_one_of_both)),
    )  # fmt: skip


NAMESPACE_VERBS: Final = (
    Verb("get-schema-compatibility-strategy", "Show which definitions may follow others.",
         (NAMESPACE_NAME,), show(_STRATEGY_PATH)),
    Verb("set-schema-compatibility-strategy", "Set which definitions may follow others.",
         (NAMESPACE_NAME, _NAMESPACE_STRATEGY), send("PUT", _STRATEGY_PATH, body=_strategy_body)),
    Verb("get-schema-autoupdate-strategy", "Show the older policy for that.", (NAMESPACE_NAME,),
         show(_OLDER_PATH)),
    Verb(
        "set-schema-autoupdate-strategy", "Set the older policy for that.",
        (
            NAMESPACE_NAME,
            option("--compatibility -c", "compatibility", _older_strategy,
                   "Full, Backward, Forward or another of the older names."),
            switch("--disabled -d", "disabled", "AutoUpdateDisabled."),
        ),
        send("PUT", _OLDER_PATH, body=_older_body),
    ),
    Verb("get-is-allow-auto-update-schema", "Show whether clients may bring new definitions.",
         (NAMESPACE_NAME,), show(_AUTO_PATH)),
    Verb("set-is-allow-auto-update-schema", "Set whether clients may bring new definitions.",
         (NAMESPACE_NAME, _ENABLE, _DISABLE), send("POST", _AUTO_PATH, body=_one_of_both)),
    *_validation_verbs(NAMESPACE_NAME, NAMESPACE_PATH),
)  # fmt: skip
"""The verbs of ``namespaces``."""

TOPIC_VERBS: Final = _validation_verbs(TOPIC_NAME, TOPIC_PATH)
"""The verbs of ``topics``."""

_TOPIC_PATH: Final = f"{TOPIC_PATH}/schemaCompatibilityStrategy"

POLICY_VERBS: Final = (
    Verb("get-schema-compatibility-strategy", "Show which definitions may follow others.",
         (TOPIC_NAME, _APPLIED), show(_TOPIC_PATH, query=("applied={applied}",))),
    Verb("set-schema-compatibility-strategy", "Set which definitions may follow others.",
         (TOPIC_NAME, _TOPIC_STRATEGY), send("PUT", _TOPIC_PATH, body=_strategy_body)),
    Verb("remove-schema-compatibility-strategy", "Remove that policy.", (TOPIC_NAME,),
         send("DELETE", _TOPIC_PATH)),
)  # fmt: skip
"""The verbs of ``topicPolicies``."""

GROUP: Final = VerbGroup(
    "schemas",
    "Show and change the schemas of topics.",
    (
        Verb("get", "Show the schema of a topic.", (TOPIC_NAME, _VERSION, _ALL), get_schema),
        Verb("metadata", "Show the numbers of the versions of a schema.", (TOPIC_NAME,),
             get_metadata),
        Verb("upload", "Add the definition in a file to the schema of a topic.",
             (TOPIC_NAME, _FILE), upload),
        Verb("compatibility", "Check that the definition in a file could be added.",
             (TOPIC_NAME, _FILE), check_compatibility),
        Verb("delete", "Delete all versions of the schema of a topic.", (TOPIC_NAME, _FORCE),
             delete_schema),
    ),
)  # fmt: skip
