"""The page of ``GET /metrics`` in Prometheus's text format.

``series`` declares every name, ``values`` reads the numbers, ``render`` makes the page in slices,
``route`` serves it.
"""
