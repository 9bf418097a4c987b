"""The common part of the APIs about stored states of share partitions: an operation each place."""

from __future__ import annotations

from embedlog.broker.error_texts import message_of
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

    `task` is the failed work, for error messages.
    `result` and `row` are the messages of a topic and of a partition in the answer, `fields`
    returns the fields of a row from what the operation has answered.
    """
    coordinator = broker.share_coordinator

    def ask(topic_id: bytes, entry: Any) -> Any | Pending[Any]:
        key = group_id, topic_id, entry.partition
        done = coordinator.write(key, lambda shard: operate(shard, key, entry))
        answer: Pending[Any] = Pending()

        def settled(done: Pending[Any]) -> None:
            error = done.error()
            if error is None:
                answer.complete(row(partition=entry.partition, **fields(done.result())))
            elif isinstance(error, KafkaError):
                # Not `answered`: it would take the operation's own errors for errors of the log.
                answer.complete(_refusal(row, entry, error, task))
            else:
                answer.fail(error)

        done.add_callback(settled)
        return answer.result() if answer.done() else answer

    def of_topic(topic: Any) -> Any | Pending[Any]:
        topic_id = bytes(topic.topic_id)
        return combined(
            [ask(topic_id, entry) for entry in topic.partitions],
            lambda rows: result(topic_id=topic_id, partitions=rows),
        )

    return combined([of_topic(topic) for topic in topics], lambda results: results)


def all_refused(topics: Iterable[Any], error: KafkaError, *, result: Any, row: Any) -> list[Any]:
    """Return the topics of an answer with the same error for each partition."""
    return [
        result(
            topic_id=topic.topic_id,
            partitions=[_refusal(row, entry, error, "") for entry in topic.partitions],
        )
        for topic in topics
    ]


def _refusal(row: Any, entry: Any, error: KafkaError, task: str) -> Any:
    """Return the answer's row for an entry that fails."""
    message = message_of(error)
    if error.code in _COORDINATOR_TEXTS and task:
        message = f"Unable to {task}: {error.message or _COORDINATOR_TEXTS[error.code]}"
    return row(partition=entry.partition, error_code=error.code, error_message=message)
