"""The laws of flow control: pure arithmetic with time as an argument.

``budget`` one limit in one dimension, ``gate`` three levels of them with fair turns (with ``node``,
``waiter_gate``, ``share`` and ``kept``), ``limits`` which limit is in force and where it is
set, ``relative`` the publish rate that some follow, ``throttle`` what is counted of all that,
``account`` the seconds a subscription spent in each state, ``verdict`` and ``sentence`` what that
account means, ``backlog`` what a subscription still owes, ``quota`` how large and how old that may
become, ``quota_sentence`` how near it is to that. What holds producers is told by
``publish_sentence`` (now) and ``past_publish_sentence`` (then), a limiter's minute by
``limiter_sentence``, a backlog from its beginning to its end by ``episode_sentence``. Adaptive
publish throttling is ``adaptive`` (its words), ``natural_rate``, the laws ``pressure`` and
``drain``, ``memory_share`` (who takes the memory), ``adaptive_limits`` (both laws on one topic),
``adaptive_topic`` (one topic from cycle to cycle) and ``adaptive_sentence``. Nothing here reads a
clock, a file or a socket, so the same code runs in the broker's loop, in a simulation and inside a
Spark worker. "Law 1.3" and the like are rules of docs/flow-laws.md.
"""
