"""Dynamic settings: which of the stored overrides are in force, and which may be stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headgate.policy.settings import SETTINGS, SettingError, Settings
from headgate.policy.settings_rules import crossed, what_is_allowed

logger = logging.getLogger("headgate.broker")


class DynamicSettings:
    """Keeps one broker's settings as its stored overrides ask for."""

    def __init__(self, settings: Settings) -> None:
        """``settings`` are those of the start; overrides are written into them."""
        self._settings = settings
        self._initial: dict[str, Any] = {}
        """What settings that ever had an override were at the start."""
        self._told: list[str] = []

    def use(self, overrides: Mapping[str, str]) -> None:
        """Put ``overrides``, which are all that are stored, in force instead of those before.

        One that is not allowed here, by itself or beside the other settings, is not used: a
        warning says so, once while that lasts.
        """
        for name in filter(_is_dynamic, overrides):
            self._initial.setdefault(name, getattr(self._settings, name))
        settings, problems = self._with(overrides)
        for pair in crossed(settings):
            misfits = [name for name in pair if name in overrides]
            problems += [what_is_allowed(settings, pair, name) for name in misfits]
            for name in misfits:
                setattr(settings, name, self._initial[name])
        for name in self._initial:
            setattr(self._settings, name, getattr(settings, name))
        for problem in problems:
            if problem not in self._told:
                logger.warning("stored setting is not used: %s", problem)
        self._told = problems

    def check(self, name: str, text: str | None, overrides: Mapping[str, str]) -> None:
        """Return if the dynamic setting ``name`` may be overridden by ``text``, or (None) go back
        to its start-up value, beside the other ``overrides``.

        Raises:
            SettingError: it may not; the text names key, value and what is allowed.
        """
        others = {key: value for key, value in overrides.items() if key != name}
        if text is not None:
            SETTINGS[name].parse(text)
            others[name] = text
        settings, _ = self._with(others)
        for pair in crossed(settings):
            if name in pair:
                raise SettingError(what_is_allowed(settings, pair, name))

    def _with(self, overrides: Mapping[str, str]) -> tuple[Settings, list[str]]:
        """The settings with those overrides that are allowed by themselves, and what is wrong with
        the others."""
        settings = replace(self._settings, **self._initial)
        problems = []
        for name, text in overrides.items():
            if not _is_dynamic(name):
                problems.append(f"{name} is not a dynamic one here")
                continue
            try:
                settings.set(name, text)
            except SettingError as error:
                problems.append(str(error))
        return settings, problems


def _is_dynamic(name: str) -> bool:
    info = SETTINGS.get(name)
    return info is not None and info.dynamic
