"""Read Apache Pulsar topics in Spark without a jar: ``spark.read.format("pulsar")``.

Spark finds the source by the name of this package and its ``DefaultSource``, without registration.
It works with any Pulsar cluster, and depends on pyspark, pyarrow, protobuf, google-crc32c and
urllib3.
"""

from __future__ import annotations

from pyspark_pulsar.source import DefaultSource

__version__ = "0.1.0"

__all__ = ["DefaultSource", "__version__"]
