"""What the pipeline works out, as pure functions over Arrow tables and numpy arrays.

No Spark, no disk, no clock: a kernel gets whole subjects and gives the rows of a table. It may
import ``headgate.flow``, ``headgate.record``, ``headgate.pipeline.tables`` and
``headgate.pipeline.time_span``.
"""
