"""Signing in to the page at an OpenID Connect issuer, by the code flow with PKCE.

The broker is the client of the issuer, so the page asks no other host: ``routes`` serves the page,
``issuer_client`` asks the issuer on a thread of its own, ``opening`` makes both from the settings.
The laws stand in :mod:`headgate.security.code_flow` and :mod:`headgate.security.sign_ins`. ``node``
may import ``opening`` and ``routes``.
"""
