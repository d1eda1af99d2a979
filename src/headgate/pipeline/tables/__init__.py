"""Declarations of the pipeline's tables.

``catalogue`` lists the tables. ``columns`` has the types that they are declared with. Only
``arrow_types`` needs pyarrow, and only ``schemas`` needs Spark.
"""
