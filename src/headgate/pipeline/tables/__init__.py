"""The pipeline's tables: columns, partitions, look-back, and their Spark and Arrow schemas.

``catalogue`` names them all; ``columns`` is what they are made of. Declarations only: the standard
library and ``headgate.record`` suffice, but for ``arrow_types`` (pyarrow) and ``schemas`` (Spark).
"""
