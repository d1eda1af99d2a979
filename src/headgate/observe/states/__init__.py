"""How limits, quotas, waiting messages, the controller and the disk stand at this instant.

Explain and the statistics show the same values.
"""
