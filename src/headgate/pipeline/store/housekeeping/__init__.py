"""Housekeeping of a folder of tables: compaction, vacuum, retention and log cleanup. No Spark.

The caller holds the folder's lock. Nothing here changes a row.
"""
