"""The settings of a broker, and the limits, quotas and retention that apply to a topic.

``settings`` is the table of all settings, which inherits those of ``openid_settings`` and
``revocation_settings``; ``dynamic_settings`` changes them at run time. The ``resolver`` finds the
most specific policy for a topic in ``limit_table``, ``quota_table`` and ``retention_table``.
``current_limits`` has the amounts that the gates enforce at present. May import ``engine`` for its
types, ``security`` for the form of a revocation, ``metadata``, ``flow`` and ``base``.
"""
