"""What the tests against an S3 share: the server, known to Spark's processes, and the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.peer.s3_server import make_bucket, s3_server
from tests.spark.conftest import quick_java, spark

__all__ = ["quick_java", "spark"]

BUCKET = "tables"


@pytest.fixture(scope="session", autouse=True)
def s3() -> Iterator[str]:
    """URL of a server with one bucket. By itself, so that Spark is started with its address."""
    with s3_server() as url, pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ENDPOINT_URL", url)
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
        make_bucket(url, BUCKET)
        yield url


@pytest.fixture
def root(request: pytest.FixtureRequest) -> str:
    """A folder of tables that nobody used before."""
    return f"s3://{BUCKET}/{request.node.name.replace('_', '-')}/tables"
