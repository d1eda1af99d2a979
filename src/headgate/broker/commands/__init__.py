"""Handlers of the commands of the binary protocol: one module for each group of commands.

A handler gets the connection as a protocol (:mod:`headgate.broker.commands.ports`). Its
constructor takes the parts of the broker that it uses. Handlers may import the modules of
``headgate.broker`` that they use, but not ``service``.
"""
