"""What the broker says of itself: explain, statistics, and its memory of the last hour.

Listens only: nothing in the broker imports it.
"""
