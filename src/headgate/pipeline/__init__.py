"""PySpark jobs over flow-control telemetry: from what brokers publish to answers in tables.

``tables`` says what there is, ``kernels`` works it out without Spark, ``store`` keeps it on disk,
``scrapes`` reads the metrics of brokers that publish no telemetry;
``steps``, ``limit_steps`` and ``episode_steps`` are the kernels as ``DataFrame -> DataFrame``,
``views`` what follows from tables without being stored, ``refresh`` brings tables up to date, and
``jobs`` and ``answers`` are where session, topics, folder and clock meet. ``show``, ``report`` and
``upkeep`` read and tidy the folder without Spark. Importing this package starts nothing
and needs only the standard library and ``headgate.record``; kernels need pyarrow and numpy; what
runs in Spark needs the extra ``headgate[spark]``.
"""
