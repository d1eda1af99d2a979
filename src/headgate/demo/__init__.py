"""``headgate demo``: ten situations on embedded brokers, each explained and one repaired.

Everything that a user of Headgate would meet is the real thing: brokers, unmodified clients in
other processes, admin REST, /metrics, telemetry and the Spark job.
"""
