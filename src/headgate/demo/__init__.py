"""``headgate demo``: ten situations on embedded brokers, each explained and one repaired.

Brokers, unmodified clients in other processes, admin REST, /metrics, telemetry and the Spark job
are those that a user of Headgate meets.
"""
