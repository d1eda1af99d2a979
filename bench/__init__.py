"""Measured claims, each beside a peer or the physical limit in the same run.

``./dev bench`` lists them. They run on whatever machine is at hand, so they count the server's own
CPU time rather than the wall clock where they can, change between the sides in short rounds, and
give medians: a noisy neighbour then disturbs both sides alike.
"""
