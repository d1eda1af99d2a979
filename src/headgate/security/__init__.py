"""Credentials in Pulsar's formats: keys, tokens, password files and certificates.

Everything here is a function of its arguments, time included; nothing opens a socket. ``headgate
tokens`` makes and reads tokens with it. Every module may be imported; the room imports only
:mod:`headgate.base`.
"""
