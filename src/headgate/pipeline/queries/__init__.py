"""Queries over a folder of tables, which Spark answers.

May import ``job_session`` and all below it. No topic is read here.
"""
