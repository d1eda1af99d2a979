"""PySpark jobs over flow-control telemetry: bronze tables, intervals and attribution.

Importing this package, or the modules ``tables``, ``options``, ``times`` and ``render``, starts
nothing and needs only the standard library and ``headgate.record``. The kernels (``decode``,
``interval_kernel``, ``attribution_kernel``) need pyarrow and numpy; ``jobs``, ``steps`` and
``delta_writer`` need Spark (extra ``headgate[spark]``).
"""
