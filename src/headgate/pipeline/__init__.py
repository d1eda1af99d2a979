"""PySpark jobs over flow-control telemetry: bronze tables, intervals, attribution and quotas.

Importing this package, or the modules ``tables``, ``options``, ``times`` and ``render``, starts
nothing and needs only the standard library and ``headgate.record``. The kernels (``decode``,
``interval_kernel``, ``attribution_kernel``, ``quota_usage_kernel``, ``evictions_kernel``) need
pyarrow and numpy; ``jobs``, ``refresh``, ``steps`` and ``delta_writer`` need Spark (extra
``headgate[spark]``).
"""
