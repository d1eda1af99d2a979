"""The agent: looks at a Pulsar cluster through its admin API, and infers what holds it back.

``looks`` declares what one look says, ``reading`` makes it of Pulsar's JSON. ``infer`` makes an
account of time of looks that follow each other, and ``cluster_history`` keeps the last hour of all.
May import ``explain``, ``access``, ``flow``, ``record`` and ``base``.
"""
