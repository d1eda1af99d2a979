"""The Spark data source of the tables: ``format("headgate_tables")``.

``data_source`` has the class that Spark loads and registers it. ``options`` reads and checks the
options, ``snapshot`` opens a version of a table, ``filters`` turns Spark's filters into pyarrow's,
``batch`` reads a version, ``stream`` reads what changed, and ``row_changes`` compares two versions
of an hour. Only ``data_source``, ``filters``, ``batch`` and ``stream`` need Spark.
"""
