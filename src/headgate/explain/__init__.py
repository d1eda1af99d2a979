"""What explain says: the diagnosis of a subscription by its last hour, and the JSON of all answers.

It knows neither broker nor cluster, so both the broker's ``observe`` and the ``agent`` use it. A
subscription's past is a ``track`` of ``points`` that undergo ``downsampling`` with age;
``backlog_phase`` finds when a backlog began, ``blamed_since`` since when its cause has held.
``diagnosis`` judges by them, ``delivery`` makes the fields of a report. ``reports`` and ``states``
declare the JSON. May import ``flow`` and ``base``.
"""
