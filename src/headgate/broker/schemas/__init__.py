"""The registry of schemas: the versions of each topic, and who may add one.

The definitions lie in the metadata and are in memory, like all rows; what is kept here are the
results of comparisons, in bounded caches. Comparisons run in slices of the scheduler. Commands and
the facade import ``registry``, /metrics ``figures``; ``version_index`` is its own.
"""
