"""Credentials in Pulsar's formats: keys, tokens, password files, certificates, and OpenID Connect.

``claims`` is the law of all tokens' claims. ``jwks``, ``key_cache`` and ``openid`` are those of
OpenID Connect: an issuer's documents, the cache of its keys, its tokens. ``revocation`` says who is
locked out. Everything here is a function of its arguments, time included; nothing opens a
socket. ``headgate tokens`` makes and reads tokens with it. Every module may be imported; the room
imports only :mod:`headgate.base`.
"""
