"""Rows of the bronze tables from files of telemetry records, which ``headgate agent`` writes.

``folder`` finds the new files, and ``decoding`` runs in a Spark task. Nothing here imports Spark;
``pipeline.record_file_ingest`` is the job.
"""
