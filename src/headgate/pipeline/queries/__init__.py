"""Queries over a folder of tables, which Spark answers: one module for each command.

May import the jobs and all that is below them. No topic is read here.
"""
