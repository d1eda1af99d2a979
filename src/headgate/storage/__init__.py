"""The asyncio shell around the log and the metadata: lanes, group commit, reads, upkeep.

Imports engine, ledger, metadata, flow and base.
"""
