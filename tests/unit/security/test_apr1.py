"""The scheme's published example, and the lengths at which its steps differ."""

from __future__ import annotations

import pytest

from headgate.security.apr1 import apr1


def test_the_example_of_its_documentation() -> None:
    assert apr1(b"myPassword", "r31.....") == "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/"


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        (b"", "$apr1$saltsalt$a8ml/vK5HEjiZ5oypDWA7/"),
        (b"a", "$apr1$saltsalt$OEnK0QmmvoDzFw9W2yFYT/"),
        (b"sixteen bytes...", "$apr1$saltsalt$Fm5CWfuEaCgmoQdJ4TGqd."),
        (b"seventeen bytes..", "$apr1$saltsalt$vP3ojcbjHLQt6GbQ/mdRF."),
        (
            b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "$apr1$saltsalt$Ya7gfF9bw1NifMy86ytMT.",
        ),
        (b"p\xc3\xa4ssword", "$apr1$saltsalt$553eXAj/BD3irf9w9nutz/"),
    ],
)
def test_what_openssl_makes(password: bytes, expected: str) -> None:
    assert apr1(password, "saltsalt") == expected


def test_eight_characters_of_the_salt_count() -> None:
    assert apr1(b"p", "12345678more") == apr1(b"p", "12345678")
