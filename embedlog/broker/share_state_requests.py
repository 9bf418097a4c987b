"""The common part of the APIs about stored states of share partitions: an operation each place."""

from __future__ import annotations

from embedlog.broker.error_texts import message_of
from embedlog.common import grouped
from embedlog.coordinator.answers import combined
from embedlog.errors import KafkaError
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.coordinator.share.share_shard import ShareShard

    Operate = Callable[[ShareShard, ShareKey, Any], Result[Any]]

_COORDINATOR_TEXTS: dict[int, str] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (
        "The coordinator is loading and hence can't process requests."
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
}


def whole(group_id: str, topics: Sequence[Any]) -> Sequence[Any]:
    """Return the topics of a request; none without a group, or if a topic has no partitions.

    Kafka gives an empty answer to such a request, without an error.
    """
    is_whole = group_id and all(topic.partitions for topic in topics)
    return topics if is_whole else ()


def answer_each(
    broker: Broker,
    group_id: str,
    topics: Iterable[Any],
    operate: Operate,
    *,
    task: str,
    result: Any,
    row: Any,
    fields: Callable[[Any], dict[str, Any]],
) -> list[Any] | Pending[list[Any]]:
    """Run `operate(shard, key, partition entry)` for each entry; return the topics of the answer.

    If entries name a partition more than once, all are run and the last one is answered. `task` is
    the failed work, for error messages. `result` and `row` are the messages of a topic and of a
    partition in the answer, `fields` returns the fields of a row from the operation's answer.
    """
    coordinator = broker.share_coordinator
    asked: dict[tuple[bytes, int], Pending[Any]] = {}
    for topic in topics:
        topic_id = bytes(topic.topic_id)
        for entry in topic.partitions:
            key = group_id, topic_id, entry.partition
            asked[topic_id, entry.partition] = coordinator.write(
                key, _operation(operate, key, entry)
            )

    def answered(partition: int, done: Pending[Any]) -> Any | Pending[Any]:
        answer: Pending[Any] = Pending()

        def settled(done: Pending[Any]) -> None:
            error = done.error()
            if error is None:
                answer.complete(row(partition=partition, **fields(done.result())))
            elif isinstance(error, KafkaError):
                # Not `answers.answered`: it takes the operation's own errors for errors of the log.
                answer.complete(_refusal(row, partition, error, task))
            else:
                answer.fail(error)

        done.add_callback(settled)
        return answer.result() if answer.done() else answer

    return combined(
        [answered(partition, done) for (_, partition), done in asked.items()],
        lambda rows: [
            result(topic_id=topic_id, partitions=[row for _, row in of_topic])
            for topic_id, of_topic in grouped(
                zip((topic_id for topic_id, _ in asked), rows, strict=True), lambda pair: pair[0]
            ).items()
        ],
    )


def all_refused(topics: Iterable[Any], error: KafkaError, *, result: Any, row: Any) -> list[Any]:
    """Return the topics of an answer with the same error for each partition."""
    return [
        result(
            topic_id=topic.topic_id,
            partitions=[_refusal(row, entry.partition, error, "") for entry in topic.partitions],
        )
        for topic in topics
    ]


def _operation(operate: Operate, key: ShareKey, entry: Any) -> Callable[[ShareShard], Result[Any]]:
    return lambda shard: operate(shard, key, entry)


def _refusal(row: Any, partition: int, error: KafkaError, task: str) -> Any:
    """Return the answer's row for a partition that fails."""
    message = message_of(error)
    if error.code in _COORDINATOR_TEXTS and task:
        message = f"Unable to {task}: {error.message or _COORDINATOR_TEXTS[error.code]}"
    return row(partition=partition, error_code=error.code, error_message=message)
