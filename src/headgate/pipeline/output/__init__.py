"""Output of the pipeline: rows of tables as text for a terminal, JSON or CSV. No Spark.

May import ``kernels``, ``tables`` and ``store``, which reads tables without Spark.
"""
