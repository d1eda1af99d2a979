"""The command ``headgate explain``.

``command`` asks the broker, and ``printing`` prints the answer, with ``--watch`` again and again.
``text`` makes its page: ``subscription``, ``publishing`` and ``limits`` print the parts of a
report, with ``causes`` for the names of verdicts, ``figures`` for its figures and ``page`` for its
lines. ``look`` looks at an Apache Pulsar cluster, with a bar of ``progress``; ``inferred`` has the
words of such an answer. Operators run the command during an incident, so it loads little: no
library for tables.
"""
