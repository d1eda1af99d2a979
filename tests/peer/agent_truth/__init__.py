"""How often the agent is right about a real Apache Pulsar.

``situations`` has runs with a known cause, ``record`` plays them by real clients and keeps every
answer of the cluster, ``judge`` lets the agent see a record at several periods and compares.
"""
