"""Answers GET_TOPICS_OF_NAMESPACE, WATCH_TOPIC_LIST and WATCH_TOPIC_LIST_CLOSE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from headgate.base.errors import HeadgateError
from headgate.base.names import NamespaceName
from headgate.base.work_units import PATTERN_COMPILED, TURN_UNITS
from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.bounds import check_watchers
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.topic_pattern import (
    PatternError,
    TopicPattern,
    TopicsHash,
    matching_names,
)
from headgate.broker.topic_watchers import TopicWatchers, too_many
from headgate.engine.errors import NotAllowedError, TopicFencedError
from headgate.metadata.catalog import Catalog
from headgate.policy.settings import Settings
from headgate.wire import encode
from headgate.wire.codes import TopicListMode
from headgate.wire.messages import BaseCommand, CommandGetTopicsOfNamespace

SLICE_NAMES: Final = 8 * TURN_UNITS
"""Names of topics that are listed in one turn."""
NAME_BYTES_PER_UNIT: Final = 512
"""Bytes of names that are listed with one unit of work, if they are long."""


class TopicListCommands:
    """Carries out the commands of all connections about lists of topics."""

    def __init__(
        self,
        catalog: Catalog,
        hidden: frozenset[str],
        settings: Settings,
        watchers: TopicWatchers,
        memory: ClientMemory,
        check: Callable[[ClientConnection, BaseCommand], None],
    ) -> None:
        """``hidden`` are the broker's own topics. ``check`` raises a refusal unless a client may
        have a command carried out."""
        self._check = check
        self._catalog = catalog
        self._hidden = hidden
        self._settings = settings
        self._watchers = watchers
        self._memory = memory

    # -- lists -----------------------------------------------------------------------------

    def topics_of_namespace(self, connection: ClientConnection, command: BaseCommand) -> None:
        """List the topics of a namespace, with each partition but without the broker's own topics.
        A namespace that does not exist has an empty list, because a client may subscribe by a
        pattern before the namespace is created.

        A client that sends a pattern gets the topics that match. If the broker does not evaluate
        the pattern, it answers with all topics and says so; the client then looks itself.

        A short request can have a long answer, which one command of the protocol holds. It is made
        in slices, and refused above ``maxMessageSize``: Java and Go clients end a connection that
        brings a longer frame. Each connection gets one such answer at a time, and none while its
        peer leaves earlier answers unread.
        """
        request = command.getTopicsOfNamespace
        try:
            namespace = NamespaceName.parse(request.namespace)
        except HeadgateError as error:
            connection.refuse(command, error)
            return
        pattern = self._pattern(request)
        if request.mode == TopicListMode.NON_PERSISTENT:
            frame = encode.topics_of_namespace(
                request.request_id,
                [],
                filtered=pattern is not None,
                topics_hash=TopicsHash().text,
            )
            connection.write(frame)
            if request.HasField("topics_pattern"):
                connection.run_in_slices(iter((PATTERN_COMPILED,)))
        else:
            connection.run_in_slices(self._list_topics(connection, command, namespace, pattern))

    def _pattern(self, request: CommandGetTopicsOfNamespace) -> TopicPattern | None:
        text, settings = request.topics_pattern, self._settings
        if (
            not request.HasField("topics_pattern")
            or not settings.enableBrokerSideSubscriptionPatternEvaluation
            or len(text) > settings.subscriptionPatternMaxLength
        ):
            return None
        try:
            return TopicPattern(text)
        except PatternError:
            return None

    def _list_topics(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        namespace: NamespaceName,
        pattern: TopicPattern | None,
    ) -> Iterator[int]:
        request = command.getTopicsOfNamespace
        size_bytes, parts, found = 0, [], TopicsHash()
        bytes_max, memory = self._settings.maxMessageSize, self._memory
        step = SLICE_NAMES if pattern is None else min(SLICE_NAMES, 4 * pattern.names_per_step)
        units = TURN_UNITS
        with ExitStack() as held:
            for names in matching_names(self._catalog, namespace, self._hidden, pattern, step):
                try:
                    if size_bytes > bytes_max:
                        raise too_many(namespace, bytes_max)
                    memory.check_answer(connection.identity, size_bytes + sum(map(len, names)))
                except HeadgateError as error:
                    connection.refuse(command, error)
                    yield TURN_UNITS
                    return
                found.add(names)
                part = encode.topic_names(names)
                size_bytes += len(part)
                parts.append(part)
                units = max(TURN_UNITS, len(part) // NAME_BYTES_PER_UNIT)
                if pattern is not None or len(names) == step:  # more may follow
                    held.enter_context(memory.working(connection, len(part)))
                    yield units
            try:
                if size_bytes > bytes_max:
                    raise too_many(namespace, bytes_max)
                self._check(connection, command)  # its slices may wait for the peer to read
                self._answer_list(connection, request, pattern, parts, found.text)
            except HeadgateError as error:
                connection.refuse(command, error)
        yield units

    @staticmethod
    def _answer_list(
        connection: ClientConnection,
        request: CommandGetTopicsOfNamespace,
        pattern: TopicPattern | None,
        parts: list[bytes],
        text: str,
    ) -> None:
        changed = not (request.HasField("topics_hash") and request.topics_hash == text)
        frame = encode.topics_of_namespace_in_parts(
            request.request_id,
            parts if changed else [],
            filtered=pattern is not None,
            topics_hash=text,
            changed=changed,
        )
        connection.write(frame)

    # -- watchers --------------------------------------------------------------------------

    def watch(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Open a watcher. Its answer has the topics that match the pattern now, none if the client
        has that list; updates follow until the client closes the watcher."""
        request = command.watchTopicList
        try:
            namespace = NamespaceName.parse(request.namespace)
            self._check_pattern(request.topics_pattern)
            if request.watcher_id in connection.watchers:
                raise TopicFencedError("Topic list watcher is already present on the connection")
            check_watchers(connection)
            pattern = request.topics_pattern
            new_bytes = self._watchers.new_pattern_bytes(namespace, pattern)
            size_bytes = request.ByteSize() + new_bytes
            self._memory.admit(connection.identity, size_bytes, connection.objects_count)
            watcher = self._watchers.open(connection, command, namespace, pattern)
        except PatternError as error:
            refusal = NotAllowedError(f"Unable to create topic list watcher: {error}")
            connection.refuse(command, refusal)
            connection.run_in_slices(iter((PATTERN_COMPILED,)))
        except HeadgateError as error:
            connection.refuse(command, error)
        else:
            connection.watchers[request.watcher_id] = watcher
            watcher.charge()
            if new_bytes:
                connection.run_in_slices(iter((PATTERN_COMPILED,)))

    def _check_pattern(self, text: str) -> None:
        settings = self._settings
        if not settings.enableBrokerSideSubscriptionPatternEvaluation:
            raise PatternError("Evaluating subscription patterns is disabled.")
        if len(text) > settings.subscriptionPatternMaxLength:
            raise PatternError(
                f"Pattern longer than maximum: {settings.subscriptionPatternMaxLength}"
            )

    @staticmethod
    def close_watcher(connection: ClientConnection, command: BaseCommand) -> None:
        """End a watcher; one that does not exist has ended."""
        request = command.watchTopicListClose
        watcher = connection.watchers.pop(request.watcher_id, None)
        if watcher is not None:
            watcher.end()
        connection.write(encode.success(request.request_id))
