"""The broker's reports on itself: explain, topic statistics, and the history behind them.

Nothing in the broker imports it. ``history`` keeps counters of the last hour, ``states`` says how
limits, quotas, waiting messages and the disk stand now, ``explain`` judges by both, ``stats`` has
Pulsar's topic statistics.
"""
