"""The commands of the binary protocol: one module for each group of them.

Imports the broker's ports, policy, engine, wire, metadata and base.
"""
