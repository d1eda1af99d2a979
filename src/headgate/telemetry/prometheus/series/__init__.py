"""The series of ``GET /metrics``: name, type, labels, unit and meaning of each.

``definition`` says what a series is, each other module declares the series of one subject, and
``catalogue`` puts all into the page's order. The reference page is generated from it, and the page
has no series outside it.

Names that start with ``pulsar_`` are Pulsar's, with the type that a Pulsar 4.0 broker prints:
``gauge`` even for values that only grow, because dashboards and type checks expect it. Series of
features that Headgate does not have (tiered storage, transactions, entry filters, replication,
compaction) are absent, not zero.
"""
