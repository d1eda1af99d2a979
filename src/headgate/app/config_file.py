"""Settings from Pulsar's ``broker.conf``, with overrides of the command line.

The syntax is that of Java's property files (:mod:`headgate.base.properties`), as Pulsar reads it.
The last line of a key counts. As in Pulsar's own file, an empty value means: not set.

A ``broker.conf`` of a real cluster has hundreds of keys that Headgate does not have. One warning
names them. Keys whose protection Headgate offers by other keys are refused. On the command line an
unknown key is an error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.app.key_files import is_literal
from headgate.app.private_files import OTHERS
from headgate.base.errors import InputError
from headgate.base.input_errors import closest_match, did_you_mean
from headgate.base.names import parse_topic
from headgate.base.properties import Assignment, parse_properties
from headgate.base.units import MS_PER_MINUTE
from headgate.policy.setting_info import SettingError
from headgate.policy.settings import SETTINGS, Settings, inconsistencies

CONFIG_BYTES_MAX = 4 * 1024 * 1024
"""Largest settings file that is read; Pulsar's own has 100 KB."""

_REPLACED = {
    "tlsEnabled": "set brokerServicePortTls and webServicePortTls",
    "tlsEnabledWithKeyStore": "key stores of Java are not supported: set tlsCertificateFilePath "
    "and tlsKeyFilePath to files in PEM",
}
"""Keys of which Headgate has another form. A broker that ignored one would lack what it asks
for."""

TYPO_RATIO = 0.95
"""Keys of a real ``broker.conf`` resemble each other: a typing error differs in a letter or two."""

_CLUSTER_NAME = re.compile(r"[-=:.\w]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and the keys of the file that Headgate does not have."""

    settings: Settings
    unsupported: tuple[str, ...]
    """In the order of the file, each once."""


def read_config(path: str) -> list[Assignment]:
    """The assignments of a file.

    Raises:
        InputError: it cannot be read, is not text or too large, holds a bad escape, holds a secret
            that others than its owner may read, or says who is trusted and everybody may write it.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(CONFIG_BYTES_MAX + 1)
    except OSError as error:
        raise InputError(f"settings file {path} cannot be read: {error.strerror}") from error
    if len(data) > CONFIG_BYTES_MAX:
        raise InputError(f"settings file {path} is too long: {CONFIG_BYTES_MAX} bytes are allowed")
    try:
        found = parse_properties(data.decode(), Path(path).name)
    except UnicodeDecodeError as error:
        raise InputError(f"settings file {path} is not UTF-8 text (byte {error.start})") from error
    if mode & OTHERS and (secrets := [each.key for each in found if _is_secret(each)]):
        raise InputError(
            f"settings file {path} has the secret of {' and '.join(secrets)}, and may be read or "
            f"written by others (mode {stat.S_IMODE(mode):04o}): chmod 600 {path}, or name a file "
            "with the secret (file:///path)"
        )
    if mode & stat.S_IWOTH and any(_authenticates(each) for each in found):
        raise InputError(
            f"settings file {path} asks for authentication, and may be written by everybody on "
            f"this machine, who could so become any role (mode {stat.S_IMODE(mode):04o}): "
            f"chmod 644 {path}"
        )
    return found


def _authenticates(assignment: Assignment) -> bool:
    return assignment.key == "authenticationEnabled" and assignment.value.lower() == "true"


def _is_secret(assignment: Assignment) -> bool:
    info = SETTINGS.get(assignment.key)
    return info is not None and info.is_secret and is_literal(assignment.value)


def parse_overrides(texts: Sequence[str]) -> list[Assignment]:
    """Assignments as the command line has them: ``key=value`` each.

    Raises:
        InputError: one has no ``=``, or a key that is not a setting.
    """
    found = []
    for text in texts:
        key, separator, value = (part.strip() for part in text.partition("="))
        if not separator or not key:
            raise InputError(f"--set {text}: key=value is allowed")
        if key not in SETTINGS and key not in _REPLACED:
            hint = did_you_mean(key, SETTINGS)
            raise InputError(f"--set {text}: there is no setting {key!r}{hint}")
        if key in SETTINGS and SETTINGS[key].shown(value) != value:
            raise InputError(
                f"--set {key}: other users of this machine see the command line, so only "
                "file:///path is allowed here"
            )
        found.append(Assignment(key, value, "--set"))
    return found


def with_suggestion(key: str) -> str:
    """An unknown key, with the known one of which it may be a typing error."""
    close = closest_match(key, SETTINGS, TYPO_RATIO)
    return f"{key} (did you mean {close}?)" if close else key


def load_settings(
    file: Sequence[Assignment] = (), overrides: Sequence[Assignment] = ()
) -> LoadedSettings:
    """Settings from defaults, then a file, then the command line.

    Raises:
        InputError: values that are not allowed: all of them, each with its key and what is; or a
            key that has another form here.
    """
    settings = Settings()
    unsupported: dict[str, None] = {}
    problems = []
    last = {assignment.key: assignment for assignment in file}
    for assignment in [*last.values(), *overrides]:
        if assignment.key in _REPLACED and assignment.value.lower() not in ("", "false"):
            problems.append(
                f"{assignment.where}: {assignment.key}={assignment.value!r} is not allowed: "
                f"{_REPLACED[assignment.key]}"
            )
        elif assignment.key not in SETTINGS:
            unsupported[assignment.key] = None
        elif not assignment.value and (empty := SETTINGS[assignment.key].empty) is not None:
            setattr(settings, assignment.key, empty)
        elif assignment.value or assignment.where == "--set":
            try:
                settings.set(assignment.key, assignment.value)
            except SettingError as error:
                problems.append(f"{assignment.where}: {error}")
    problems += [] if problems else check_settings(settings)
    if problems:
        raise InputError("\n".join(problems))
    return LoadedSettings(settings, tuple(unsupported))


def check_settings(settings: Settings) -> list[str]:
    """One sentence for each contradiction between values that are allowed one by one."""
    problems = inconsistencies(settings)
    if not _CLUSTER_NAME.fullmatch(settings.clusterName):
        problems.append(
            f"clusterName={settings.clusterName!r} is not allowed; use letters, digits and -=:._"
        )
    try:
        topic = parse_topic(settings.headgateTelemetryTopic)
    except InputError as error:
        problems.append(f"headgateTelemetryTopic: {error}")
    else:
        if not topic.is_persistent or topic.partition >= 0:
            problems.append(
                f"headgateTelemetryTopic={settings.headgateTelemetryTopic!r} is not allowed; "
                "use a persistent topic that is no partition"
            )
    if MS_PER_MINUTE % settings.headgateTelemetryIntervalMs:
        problems.append(
            f"headgateTelemetryIntervalMs={settings.headgateTelemetryIntervalMs} is not allowed; "
            f"use an integer that divides {MS_PER_MINUTE}"
        )
    return problems + _port_problems(settings)


def _port_problems(settings: Settings) -> list[str]:
    problems = []
    keys_of: dict[int, list[str]] = {}
    for plain in ("brokerServicePort", "webServicePort"):
        if getattr(settings, plain) < 0 and getattr(settings, f"{plain}Tls") < 0:
            problems.append(f"neither {plain} nor {plain}Tls is a port: one of them is needed")
        for key in (plain, f"{plain}Tls"):
            if (number := getattr(settings, key)) > 0:
                keys_of.setdefault(number, []).append(key)
    for number, keys in keys_of.items():
        if len(keys) > 1:
            problems.append(
                f"{' and '.join(keys)} are {'both' if len(keys) == 2 else 'all'} {number}: "
                "different ports are allowed"
            )
    if settings.tlsAllowInsecureConnection:
        problems.append(
            "tlsAllowInsecureConnection=true is not allowed: a certificate that is not verified "
            "proves nothing. Put the authority of the clients into tlsTrustCertsFilePath, or do "
            "not ask for certificates"
        )
    return problems
