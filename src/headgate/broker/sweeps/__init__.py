"""What the broker does periodically: rates, quotas, trimming, inactive topics, log maintenance.

``sweeps`` runs the others on their intervals; each takes what it uses. Imports storage, policy,
the engine, ledger, flow and base.
"""
