"""The broker as its admin API sees it: the port, and the implementation over the running broker.

Imports the broker, what observes it, policy and everything below.
"""
