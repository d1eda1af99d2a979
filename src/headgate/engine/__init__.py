"""Broker logic without I/O: topics, subscriptions, dispatch, admission and backlog quotas.

Events come in as method calls (publish, acknowledge, flow, time passed). Effects go out in order
through protocols that the broker's shell or a test implements: ``effects`` (appends, reads),
``observer`` (what changed), ``ports`` (the stored entries), and the connections' ports in
``producer`` and ``consumer``. Nothing here reads a clock or touches a disk or a socket. An entry is
an ordinal of its topic and opaque bytes. The engine may import ``flow`` and ``base``. Others may
import every module here, but call only :class:`Engine`, :class:`Topic`, :class:`TopicPublishing`
and :class:`Subscription` to change something.

Terms:

* *turn*: one pass of the event loop. It starts with :meth:`Engine.begin_turn`, which sets the time,
  and ends with :meth:`Engine.flush`, which does the work that events and time made possible.
* *gate*: the budgets of one limit, at which those who exceed it wait for their turns.
* *park*: to keep a SEND in its producer's queue before it is appended, with a cause.
* *hold*: to park SENDs until acknowledgements or an operator make room: a backlog quota that holds
  producers, or a full disk.
"""
