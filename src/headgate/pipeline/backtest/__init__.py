"""The policy backtest: what recorded topics would have done under other limits, laws and quotas.

``series`` makes a topic's load out of bronze, ``replay`` plays it under one policy through the
broker's own laws, ``kernel`` does the same for many policies at once, ``ranking`` says which of
them did best, ``paste`` how to set them. ``job`` puts it together in Spark; nothing else here
needs it.
"""
