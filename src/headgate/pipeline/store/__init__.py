"""A pipeline folder on disk: Parquet files, Delta's log, the writer's lock and the checkpoints.

The only place that knows how tables are stored. ``delta_writer`` needs Spark, the rest does not.
"""
