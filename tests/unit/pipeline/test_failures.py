"""Errors of storage libraries in one line."""

from __future__ import annotations

from headgate.pipeline.failures import joined_causes


def test_a_response_of_s3_shrinks_to_its_reason() -> None:
    assert joined_causes("refused: <?xml?><Error></Error>") == "refused: no reason given"
    assert joined_causes("no bucket (Request ID: x)") == "no bucket"
    assert joined_causes("no bucket (S3 Extended Request ID: x)\nmore") == "no bucket\nmore"
    page = "refused: <?xml?><Error><Message>no such bucket</Message></Error>"
    assert joined_causes(page) == "refused: no such bucket"


def test_causes_of_delta_stand_in_one_line() -> None:
    assert joined_causes("it failed\n  \x1b[31m↳\x1b[0m the disk is full") == (
        "it failed: the disk is full"
    )
