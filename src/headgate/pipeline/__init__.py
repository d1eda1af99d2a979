"""PySpark jobs over flow-control telemetry: from what brokers publish to answers in tables.

``tables`` says what there is, ``kernels`` works it out without Spark, ``store`` keeps it on disk;
``steps``, ``limit_steps`` and ``episode_steps`` are the kernels as ``DataFrame -> DataFrame``,
``views`` what follows from tables without being stored, ``refresh`` brings tables up to date, and
``jobs`` is where session, topics, folder and clock meet. Importing this package starts nothing
and needs only the standard library and ``headgate.record``; kernels need pyarrow and numpy; what
runs in Spark needs the extra ``headgate[spark]``.
"""
