"""Lineage of a job: what it reads, writes and checks, as events of OpenLineage.

``job_lineage`` is what jobs use; it costs nothing without a URL. Only ``events`` needs the client
library. ``event_sender`` posts the events beside the job, so that an unreachable URL never delays
it. The schemas and the checks in the events follow from the declarations in ``tables``.
"""
