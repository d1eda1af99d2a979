"""PySpark jobs that turn the flow-control telemetry of brokers into tables.

From the bottom up, each folder importing only those before it:

``tables``     what tables there are, column by column
``kernels``    pure functions over Arrow tables, without Spark
``store``      tables on disk or in S3, their writer's lock, and housekeeping
``scrapes``    telemetry from the metrics of brokers that publish none
``steps``      kernels as functions ``DataFrame -> DataFrame``
``derived``    what each derived table follows from, hour by hour
``output``     rows as text, JSON or CSV, without Spark
``streaming``  the structured streaming query that reads telemetry
``queries``    queries over a folder of tables, answered by Spark
``backtest``   the replay of recorded topics under other policies
``report``     one HTML page about a time range, without Spark

``refresh`` brings derived tables up to date; ``jobs`` has the commands that read telemetry.
Importing this package starts nothing and needs only the standard library and ``headgate.record``.
Kernels need pyarrow and numpy; what runs in Spark needs the extra ``headgate[spark]``.
"""
