"""Read Apache Pulsar topics in Spark without a jar: ``spark.read.format("pulsar")``.

Spark finds the source by this package's name and its ``DefaultSource``; nothing has to be
registered. Works with any Pulsar cluster and depends on pyspark, pyarrow, urllib3 and
pulsar-client only.
"""

from __future__ import annotations

from pyspark_pulsar.source import DefaultSource

__version__ = "0.1.0"

__all__ = ["DefaultSource", "__version__"]
