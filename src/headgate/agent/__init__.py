"""The agent: looks at a Pulsar cluster through its admin API, and infers what holds it back.

``looks`` declares what one look says; ``reading``, ``limits_reading`` and ``quota_reading`` make it
of Pulsar's JSON. ``infer`` is the law that makes an account of time of looks that follow each
other, with what they add up to: ``consumer_windows``, ``undelivered``, ``oldest_message``.
``inferred_subscription`` and ``inferred_topic`` follow one subject, ``look_changes`` says what
differs between two looks, ``cluster_history`` follows all of a cluster, and ``cluster_reports``
writes what they say as a broker's explain does.
``scout`` does the looks: ``look_plan`` says which are due, ``request_budget`` how many requests a
cluster gets, ``questions`` and ``limit_questions`` what they ask, and ``cluster_client`` asks it
over a ``transport``; ``cluster_kind`` finds out what answers. ``bundle`` keeps looks in a file.
``cluster_watch`` does that for days: ``shared_history`` lets several threads ask,
``quota_forecast`` says when quotas break and ``quota_guard`` which need a closer look,
``publish_limit`` what holds producers, ``records`` makes telemetry for ``record_files`` or
``record_topic``, which has a ``pulsar_producer``, and ``web`` and ``metrics`` answer.
``page_routes`` has what views of the page ask beside explain: ``cluster_states`` with the
``standing`` of each cluster, ``limit_reports``, ``storage_reports`` and ``stats_reports``.
``configuration`` says for which clusters.
May import ``explain``, ``access``, ``flow``, ``record``, ``fs`` and ``base``.
"""
