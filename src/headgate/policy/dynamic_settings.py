"""Dynamic settings: the stored overrides of settings that may change while the broker runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headgate.policy.setting_info import SettingError
from headgate.policy.settings import SETTINGS, Settings, crossed_watermarks, watermark_problem

logger = logging.getLogger("headgate.broker")


class DynamicSettings:
    """Applies stored overrides to one broker's settings."""

    def __init__(self, settings: Settings) -> None:
        """``settings`` hold their start-up values; :meth:`use` writes overrides into them."""
        self._settings = settings
        self._initial: dict[str, Any] = {}
        """The start-up values of all settings that have had an override."""
        self._reported: list[str] = []
        """The problems that the broker has logged."""

    def use(self, overrides: Mapping[str, str]) -> None:
        """Replace the overrides in force by ``overrides``: all that the metadata holds.

        An override that is not allowed, alone or together with the other settings, has no effect;
        a warning names it once, as long as the problem lasts.
        """
        for name in filter(_is_dynamic, overrides):
            self._initial.setdefault(name, getattr(self._settings, name))
        settings, problems = self._settings_with(overrides)
        for pair in crossed_watermarks(settings):
            misfits = [name for name in pair if name in overrides]
            problems += [watermark_problem(settings, pair, name) for name in misfits]
            for name in misfits:
                setattr(settings, name, self._initial[name])
        for name in self._initial:
            setattr(self._settings, name, getattr(settings, name))
        for problem in problems:
            if problem not in self._reported:
                logger.warning("a stored setting has no effect: %s", problem)
        self._reported = problems

    def check(self, name: str, text: str | None, overrides: Mapping[str, str]) -> None:
        """Check that ``text`` may override the dynamic setting ``name``, or (None) that it may
        return to its start-up value, together with the other ``overrides``.

        Raises:
            SettingError: it may not; the text names the setting, the value and the range.
        """
        others = {key: value for key, value in overrides.items() if key != name}
        if text is not None:
            SETTINGS[name].parse(text)
            others[name] = text
        settings, _ = self._settings_with(others)
        for pair in crossed_watermarks(settings):
            if name in pair:
                raise SettingError(watermark_problem(settings, pair, name))

    def _settings_with(self, overrides: Mapping[str, str]) -> tuple[Settings, list[str]]:
        """The settings with every override that is allowed alone; the problems of the others."""
        settings = replace(self._settings, **self._initial)
        problems = []
        for name, text in overrides.items():
            if not _is_dynamic(name):
                problems.append(f"this release has no dynamic setting {name}")
                continue
            try:
                settings.set(name, text)
            except SettingError as error:
                problems.append(str(error))
        return settings, problems


def _is_dynamic(name: str) -> bool:
    info = SETTINGS.get(name)
    return info is not None and info.dynamic
