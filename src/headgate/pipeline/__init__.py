"""PySpark jobs over flow-control telemetry: what brokers publish becomes tables.

From the bottom up, each folder importing only those before it:

``tables``     what tables there are, column by column
``kernels``    how rows follow from rows, over Arrow tables, without Spark
``store``      tables on disk or in S3, their writer's lock, and housekeeping
``scrapes``    telemetry from the metrics of brokers that publish none
``steps``      kernels as functions ``DataFrame -> DataFrame``
``derived``    which hours of a derived table follow from which rows of its source
``output``     rows as text, JSON or CSV, without Spark
``streaming``  the structured streaming query that reads telemetry
``queries``    what Spark answers over a folder of tables
``backtest``   the replay of recorded topics under other policies
``report``     one HTML page about a time range, without Spark

``refresh`` brings derived tables up to date; ``jobs`` are the commands that read telemetry, where
session, topics, folder and clock meet. Importing this package starts nothing and needs only the
standard library and ``headgate.record``. Kernels need pyarrow and numpy; what runs in Spark needs
the extra ``headgate[spark]``.
"""
