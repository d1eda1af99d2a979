"""What may be a role."""

from __future__ import annotations

import pytest

from headgate.security.provider import ROLE_CHARACTERS_MAX, Credentials, is_role


@pytest.mark.parametrize("text", ["app", "a b", "größe", "x" * ROLE_CHARACTERS_MAX, "CN=a,O=b"])
def test_visible_texts_are_roles(text: str) -> None:
    assert is_role(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "eve ",
        " eve",
        "x" * (ROLE_CHARACTERS_MAX + 1),
        "eve\nforged",
        "a\tb",
        "a\x00",
        "a\u200b",
        "a\u2028",
    ],
)
def test_what_would_break_a_line_or_hide_in_it_is_none(text: str) -> None:
    """A token whose role had a line feed wrote a line of its own into the log, and a role with an
    invisible character could not be revoked."""
    assert not is_role(text)


def test_credentials_do_not_show_their_secret() -> None:
    assert "s3cret" not in repr(Credentials("token", b"s3cret"))
