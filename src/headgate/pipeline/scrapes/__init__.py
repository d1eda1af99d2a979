"""From the ``/metrics`` texts of a real Pulsar cluster to rows of bronze.

``series`` says what is read, ``reading`` reads one text, ``rows`` makes rows of two, ``folder``
finds the files, ``decoding`` is what a task does with some of them, and ``ingest`` is the job.
"""
