"""The report: one HTML page about a time range.

``backlogs``, ``publishing``, ``quotas``, ``backtests``, ``quality`` and ``scores`` read the tables
and return plain values, bounded in number. ``figures`` turns these into charts, ``sections`` and
``summary`` into text, ``page`` into HTML. ``job`` is the command. Nothing here uses Spark.
"""
