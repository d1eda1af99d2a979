"""The broker on asyncio: it carries out the engine's decisions on sockets, disk and timers.

``service`` composes one broker from its parts and runs the turns of its event loop. ``server`` and
``connection`` speak the binary protocol, with the handlers of :mod:`headgate.broker.commands`.
``registry``, ``subscriptions`` and ``partition_subscriptions`` create, load and delete topics and
subscriptions, one change of a name at a time (``keyed_mutex``). ``sweeps`` does the periodic work;
``slices`` divides long work. ``effects`` carries out what the engine asks for, ``entries`` reads
single entries. ``policy_updates`` and ``policy_rollout`` bring changed settings and policies to the
engine. ``authorization`` decides about operations, ``revoked_clients`` about those locked
out; ``connection_admission`` and ``count_limits`` refuse what is too much. ``damage`` and
``quota_logger`` report lost data and quotas; ``info`` has the broker's identity and counters. The
constructor of a part takes what the part uses, never the whole broker.

Inside, ``server`` imports ``service`` and ``commands``, ``commands`` imports ``connection``, and
none of them is imported from below. May import control, storage, policy, engine, wire, ledger,
metadata, security, flow and base; not observe or facade, which use the broker.
"""
