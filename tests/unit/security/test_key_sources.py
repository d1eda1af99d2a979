"""Base64 in its forms, keys in URLs, and paths."""

from __future__ import annotations

import pytest

from headgate.security.errors import InvalidKeyError
from headgate.security.key_sources import decoded, key_of_data_url, path_of_file_url


def test_the_alphabet_of_urls() -> None:
    assert decoded("-_-_") == decoded("+/+/") == b"\xfb\xff\xbf"


@pytest.mark.parametrize("text", ["", "=", "A", "AAAA!", "\xff"])
def test_what_is_no_base64(text: str) -> None:
    with pytest.raises(ValueError, match=r"no base64|empty"):
        decoded(text)


def test_a_key_in_a_url() -> None:
    assert key_of_data_url("data:;base64,AAEC", "k") == b"\0\1\2"
    assert key_of_data_url("data:application/octet-stream;base64,%41AEC", "k") == b"\0\1\2"
    with pytest.raises(InvalidKeyError, match="k is no data:"):
        key_of_data_url("data:,AAEC", "k")


def test_the_path_of_a_file() -> None:
    assert path_of_file_url("file:///a%20b/c", "k") == "/a b/c"
    assert path_of_file_url("file://localhost/a", "k") == "/a"
    assert path_of_file_url("file:/a", "k") == "/a"
    with pytest.raises(InvalidKeyError, match="names no file of this machine"):
        path_of_file_url("file://other/a", "k")
