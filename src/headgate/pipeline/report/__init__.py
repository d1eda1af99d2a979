"""One page about a time range: ``headgate pipeline report``.

``backlogs``, ``publishing``, ``quotas``, ``backtests`` and ``quality`` ask the tables and give
plain values, bounded in number; ``figures`` makes charts of them, ``sections`` and ``happened``
words, ``page`` the page. No Spark.
"""
