"""Checks of arguments: the error names the argument, the value and the expected type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog.client import arguments
from embedlog.common import TopicPartition


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (
            lambda value: arguments.names(value, "delete_topics", "topics"),
            "jobs",
            "delete_topics(topics='jobs'): expected a list of topic names, got one str; "
            "write ['jobs']",
        ),
        (
            lambda value: arguments.names(value, "delete_topics", "topics", kinds=(str, bytes)),
            b"jobs",
            "delete_topics(topics=b'jobs'): expected a list of topic names, got one bytes; "
            "write [b'jobs']",
        ),
        (
            lambda value: arguments.names(value, "subscribe", "topics"),
            b"jobs",
            "subscribe(topics=b'jobs'): expected a list of topic names, got bytes",
        ),
        (
            lambda value: arguments.names(value, "delete_topics", "topics"),
            5,
            "delete_topics(topics=5): expected a list of topic names, got int",
        ),
        (
            lambda value: arguments.names(value, "delete_topics", "topics"),
            ["jobs", 5],
            "delete_topics(topics[1]=5): expected topic names as str, got int",
        ),
        (
            lambda value: arguments.partitions(value, "assign"),
            "t",
            "assign(partitions='t'): expected a list of partitions, as TopicPartition or "
            "(topic, partition), got one str; write [('t', 0)] for its partition 0",
        ),
        (
            lambda value: arguments.partitions(value, "assign"),
            ["t"],
            "assign(partitions[0]='t'): expected a TopicPartition or (topic, partition), got str",
        ),
        (
            lambda value: arguments.partitions(value, "assign"),
            ("t", 0),
            "assign(partitions=('t', 0)): expected a list of partitions, as TopicPartition or "
            "(topic, partition), got a single one; write [('t', 0)]",
        ),
        (
            lambda value: arguments.partitions(value, "assign"),
            [("t", 0.0)],
            "assign(partitions[0]: partition=0.0): expected a partition's number as int, got float",
        ),
        (
            lambda value: arguments.partition(value, "seek"),
            (b"t", 0),
            "seek(partition: topic=b't'): expected a topic's name as str, got bytes",
        ),
        (
            lambda value: arguments.timeout_ms(value, "poll"),
            "5",
            "poll(timeout_ms='5'): expected milliseconds as int, got str",
        ),
        (
            lambda value: arguments.timeout_ms(value, "poll"),
            None,
            "poll(timeout_ms=None): expected milliseconds as int, got NoneType",
        ),
        (
            lambda value: arguments.callback(value, "commit_async", "callback"),
            5,
            "commit_async(callback=5): expected a function, or None, got int",
        ),
        (
            lambda value: arguments.timestamp_ms(value, "send"),
            1.5,
            "send(timestamp_ms=1.5): expected milliseconds since 1970 as int, such as "
            "int(time.time() * 1000), got float",
        ),
    ],
)
def test_a_wrong_type_names_the_argument_what_came_and_what_is_expected(
    check: Callable[[Any], object], value: Any, message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        check(value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda: arguments.offset(-1, "seek"),
            "seek(offset=-1): must not be negative",
        ),
        (
            lambda: arguments.partition(("t", -1), "seek"),
            "seek(partition: partition=-1): must not be negative",
        ),
        (
            lambda: arguments.topic_name(" ", "partitions_for"),
            "partitions_for(topic=' '): a topic's name must not be empty",
        ),
        (
            lambda: arguments.timeout_ms(-5, "poll"),
            "poll(timeout_ms=-5): must not be negative, nor endless",
        ),
        (
            lambda: arguments.timeout_ms(float("inf"), "poll"),
            "poll(timeout_ms=inf): must not be negative, nor endless",
        ),
    ],
)
def test_a_value_out_of_range_names_the_argument(check: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        check()
    assert str(caught.value) == message


def test_what_is_right_comes_back_as_clients_work_with_it() -> None:
    assert arguments.partitions(iter([("t", 0), ["u", 1]]), "assign") == [
        TopicPartition("t", 0),
        TopicPartition("u", 1),
    ]
    assert arguments.names({"a": 1}, "create_topics", "topics") == ["a"]
    assert arguments.timeout_ms(5.7, "poll") == 5
    assert arguments.optional_timeout_ms(None, "commit") is None


def test_an_error_of_the_users_own_iterator_passes_through() -> None:
    class Broken:
        def __iter__(self) -> Any:
            raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$"):
        arguments.names(Broken(), "subscribe", "topics")
