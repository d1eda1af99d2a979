"""``headgate pipeline alerts``: open backlogs, quotas and faults of the tables as alerts.

``backlogs``, ``quotas``, ``telemetry`` and ``quality`` each read one kind of alert from the tables.
``selection`` bounds their number, ``plan`` compares them with what a target has, and ``delivery``
sends the difference. No Spark.
"""
