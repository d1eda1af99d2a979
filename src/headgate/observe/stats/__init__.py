"""Topic statistics in the shapes of Pulsar's admin API: the fields, and what fills them.

``fields`` declares the JSON, ``topic`` fills ``stats``, ``internal`` fills ``stats-internal``.
"""
