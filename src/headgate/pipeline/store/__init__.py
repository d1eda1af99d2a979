"""Storage of a pipeline folder: Delta tables on a file system or in S3, and the lock of their
writer.

No other package knows how tables are stored. Only ``delta_writer`` and ``spark_reader`` need Spark.
"""
