"""The policy backtest: it replays recorded topics under other limits, laws and quotas.

``series`` derives the load of a topic from bronze. ``replay`` replays it under one policy with the
broker's laws; ``kernel`` does the same for many policies at once. ``ranking`` orders the policies,
and ``settings_commands`` returns the commands that set them. ``job`` is the Spark job; no other
module but ``task_progress`` needs Spark.
"""
