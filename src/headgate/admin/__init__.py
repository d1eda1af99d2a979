"""The admin REST API, as Pulsar's clients, ``pulsar-admin`` and dashboards use it.

``app`` is the ASGI application; each other module holds the routes of one subject. A route names
the operation that it performs (``operations``), its body and its reply, from which authorization
and the OpenAPI description follow. Every error is ``{"reason": text}``.
Imports ``headgate.facade.protocol``, the fields of statistics and reports in ``headgate.observe``,
``headgate.metadata`` and ``headgate.base``.
"""
