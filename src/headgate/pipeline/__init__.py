"""PySpark jobs over flow-control telemetry: from what brokers publish to answers in tables.

``tables`` says what there is, ``kernels`` works it out without Spark, ``store`` keeps it on disk;
``steps`` are the kernels as ``DataFrame -> DataFrame``, ``refresh`` brings tables up to date, and
``jobs`` and ``answers`` are where session, topics, folder and clock meet. ``show``, ``report`` and
``upkeep`` read and tidy the folder without Spark. Importing this package starts nothing
and needs only the standard library and ``headgate.record``; kernels need pyarrow and numpy; what
runs in Spark needs the extra ``headgate[spark]``.
"""
