"""The settings that revoke roles and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.policy.setting_info import TextRule, setting
from headgate.policy.sign_in_settings import SignInSettings
from headgate.security.revocation import SETTING_CHARACTERS_MAX, problem_of_setting

_ENTRIES: Final = TextRule(
    f"names with commas between them, each perhaps with ' until 2026-12-31T00:00:00Z', "
    f"{SETTING_CHARACTERS_MAX:,} characters at most",
    problem_of_setting,
)


@dataclass(slots=True)
class RevocationSettings(SignInSettings):
    """The values in force. Field names are the keys."""

    headgateRevokedRoles: str = setting(
        "",
        "Roles that may not connect any more, whatever their credentials. A second after a change "
        "their connections have ended.",
        dynamic=True,
        rule=_ENTRIES,
    )
    headgateRevokedTokenIds: str = setting(
        "",
        "Ids (claim jti) of tokens that are not accepted any more; as headgateRevokedRoles. With "
        "the instant at which a token expires, its entry lapses then.",
        dynamic=True,
        rule=_ENTRIES,
    )
    headgateRevocationFile: str = setting(
        "",
        "File with further revocations, for thousands of them: 'role NAME' or 'token ID' in each "
        "line, perhaps with 'until' and an instant. The broker reads it again when it changes. If "
        "it cannot, the last entries stay in force, and the log says why.",
    )


def revocation_problems(settings: RevocationSettings) -> list[str]:
    """A sentence for each setting that revokes and cannot."""
    if settings.authenticationEnabled:
        return []
    return [
        f"{name} needs authenticationEnabled=true: without it nobody has a role"
        for name in ("headgateRevokedRoles", "headgateRevokedTokenIds", "headgateRevocationFile")
        if getattr(settings, name)
    ]
