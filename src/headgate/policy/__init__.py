"""Which settings, limits, quotas and retention are in force.

``settings`` is the table of all settings and ``dynamic_settings`` changes them at run time. The
``resolver`` finds the most specific policy for a topic in ``limit_table``, ``quota_table`` and
``retention_table``. ``limits_in_force`` adds what changes by the second. May import ``engine`` for
its types, ``metadata``, ``flow`` and ``base``.
"""
