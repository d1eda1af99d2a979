"""The pipeline's computations as pure functions over Arrow tables and numpy arrays.

A kernel uses neither Spark, disk nor clock. It takes all rows of some subjects and returns rows of
a table. It may import ``headgate.flow``, ``headgate.record``, ``headgate.pipeline.tables`` and
``headgate.pipeline.time_span``.
"""
