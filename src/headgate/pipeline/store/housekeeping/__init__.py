"""Housekeeping of a folder of tables: compaction, vacuum, retention and log cleanup. No Spark.

Each works under the housekeeping lease of a table, and beside the job that fills it. Nothing here
changes a row.
"""
