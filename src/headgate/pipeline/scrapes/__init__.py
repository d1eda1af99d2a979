"""Rows of the bronze tables from scrapes of ``/metrics`` of an Apache Pulsar cluster.

``series`` lists the series that are read. ``reading`` parses one scrape. ``rows`` makes rows from
two. ``folder`` finds the files, and ``decoding`` runs in a Spark task. Nothing here imports Spark;
``pipeline.scrape_ingest`` is the job.
"""
