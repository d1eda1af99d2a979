"""PySpark jobs that turn the flow-control telemetry of brokers into tables.

From the bottom up; no folder imports a later one:

``tables``     what tables there are, column by column
``kernels``    pure functions over Arrow tables, without Spark
``scrapes``    rows of telemetry from the metrics of brokers that publish none, without Spark
``record_files``  rows of telemetry from files of records, without Spark
``store``      tables on disk or in S3, their writer's lock, and housekeeping
``source``     the Spark data source that reads and writes the tables
``sql``        the SQL of the tables and views, for several engines, without Spark
``steps``      kernels as functions ``DataFrame -> DataFrame``
``derived``    which hours of each derived table follow from which rows
``output``     rows as text, JSON or CSV, without Spark
``backtest``   the replay of recorded topics under other policies
``report``     one HTML page about a time range, without Spark
``streaming``  the structured streaming query that reads telemetry
``queries``    queries over a folder of tables, answered by Spark

Below all folders are ``options``, ``location``, ``time_span``, ``progress`` and ``failures``.
``session`` starts Spark, ``scrape_ingest`` and ``record_file_ingest`` read folders of files,
``refresh`` brings derived tables up to date, and ``jobs`` has the commands that read telemetry.
``tests/tidy/test_layers.py`` holds these directions.

Importing this package starts nothing and needs only the standard library and ``headgate.record``.
Kernels need pyarrow and numpy; what runs in Spark needs the extra ``headgate[spark]``.
"""
