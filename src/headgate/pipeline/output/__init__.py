"""Output of the pipeline: rows of tables as text for a terminal, JSON or CSV.

May import ``kernels``, ``tables`` and ``store``, which reads tables without Spark. Nothing here may
reach Spark.
"""
