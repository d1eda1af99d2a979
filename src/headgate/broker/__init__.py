"""The broker on asyncio: it carries out the engine's decisions on sockets, disk and timers.

``service`` composes one broker from its parts and runs the turns of its event loop. ``server`` and
``connection`` speak the binary protocol, with the handlers of :mod:`headgate.broker.commands`.
``registry`` and ``subscriptions`` create, load and delete topics and subscriptions; ``sweeps`` does
the periodic work. The constructor of a part takes what the part uses, never the whole broker.
Inside, ``server`` imports ``service`` and ``commands``, ``commands`` imports ``connection``, and
none of them is imported from below. May import control, storage, policy, engine, wire, ledger,
metadata, flow and base; not observe or facade, which use the broker.
"""
