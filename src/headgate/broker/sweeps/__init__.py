"""The broker's periodic work: rates, quotas, trimming, inactive topics, log maintenance.

``sweeps`` runs the others on their intervals; each takes what it uses. May import the
registry, the slices and the quota logger of the broker, storage, policy, the engine, ledger,
metadata, flow and base.
"""
