"""The broker's periodic work: rates, quotas, trimming, inactive topics, log maintenance.

``sweeps`` runs the others on their intervals; each takes what it uses. May import storage,
policy, the engine, ledger, flow and base.
"""
