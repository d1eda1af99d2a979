"""What the broker says about itself: explanations, statistics and a history of the last hour.

It listens only: nothing in the broker imports it. ``history`` keeps counters of the last hour,
``states`` says how limits, quotas, waiting messages and the disk stand now, ``explain`` judges by
both, ``stats`` has Pulsar's topic statistics.
"""
