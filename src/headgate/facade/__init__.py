"""The broker as its admin API sees it: the protocol, and its implementation over a running broker.

It imports the broker, what observes it, policy and everything below.
"""
