"""Queries over a folder of tables, answered by Spark.

May import ``job_session`` and all below it. No topic is read here.
"""
