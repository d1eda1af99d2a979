"""The command ``headgate explain``.

``command`` asks the broker, ``text`` prints the answer. ``subscription``, ``publishing`` and
``limits`` print the parts of a report, with ``figures`` for its figures and ``page`` for its lines.
``look`` looks at an Apache Pulsar cluster, with a bar of ``progress``; ``inferred`` has the words
of such an answer. Operators run the command during an incident, so it loads little: no library for
tables.
"""
