"""The page over the tables: ``headgate pipeline serve``, which shows yesterday.

``server`` listens, ``app`` answers requests, ``selection`` reads their parameters, and each other
module has the answers of one view. No Spark: it reads tables as ``report`` and ``output`` do, and
may import these, ``store``, ``kernels``, ``tables`` and ``headgate.page``.
"""
