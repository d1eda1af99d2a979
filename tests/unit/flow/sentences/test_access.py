"""What is said of producers that may not join a topic."""

from __future__ import annotations

from headgate.flow.sentences.access import access_sentence


def test_nothing_is_said_of_a_topic_that_is_open() -> None:
    assert access_sentence(waiting=0, holder="p") == ""


def test_the_holder_is_named() -> None:
    assert access_sentence(waiting=1, holder="p1") == (
        "1 producer waits for exclusive access, which p1 has"
    )
    assert access_sentence(waiting=1_200, holder="") == (
        "1,200 producers wait for exclusive access, until the producers that share the topic are "
        "gone"
    )


def test_a_terminated_topic_takes_no_more() -> None:
    assert access_sentence(waiting=0, holder="", terminated=1) == (
        "the topic is terminated: it takes no more messages"
    )
    assert access_sentence(waiting=0, holder="", terminated=1, partitions=3) == (
        "the topic is terminated on 1 of 3 partitions: it takes no more messages"
    )
