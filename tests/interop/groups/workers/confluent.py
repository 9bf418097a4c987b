"""A member by confluent-kafka, of the classic or the consumer protocol."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.interop.groups.journal import COMMIT_EVERY, POLL_SECONDS, Journal, Partition, options

REFUSALS = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST,
}


def main() -> None:
    """Consume until SIGTERM, or until the member is fenced."""
    asked = options()
    journal = Journal()
    consumer = Consumer(settings(asked))
    consumer.subscribe(
        asked["topics"],
        on_assign=lambda _, partitions: journal.assigned(_pairs(partitions)),
        on_revoke=lambda _, partitions: _give_up(consumer, journal, partitions),
        on_lost=lambda _, partitions: journal.lost(_pairs(partitions)),
    )
    while not journal.is_stopping:
        message = consumer.poll(POLL_SECONDS)
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError._FATAL:
            journal.fenced(error)
            return
        if message is not None and error is None:
            journal.record(*_place(message))
        if journal.uncommitted_count >= COMMIT_EVERY or message is None:
            _commit(consumer, journal)
    consumer.close()
    journal.closed()


def settings(asked: dict[str, object]) -> dict[str, object]:
    """Return the arguments as librdkafka's settings."""
    found = {
        "bootstrap.servers": asked["address"],
        "group.id": asked["group"],
        "group.protocol": asked["protocol"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
        "log_level": 0,
    }
    if asked["instance"]:
        found["group.instance.id"] = asked["instance"]
    if asked["protocol"] == "classic":
        found["session.timeout.ms"] = asked["session_ms"]
        found["max.poll.interval.ms"] = 3 * int(str(asked["session_ms"]))
        found["heartbeat.interval.ms"] = asked["heartbeat_ms"]
        found["partition.assignment.strategy"] = asked.get("assignor") or "range"
    return found


def _place(message: Message) -> tuple[str, int, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset


def _give_up(consumer: Consumer, journal: Journal, partitions: list[TopicPartition]) -> None:
    _commit(consumer, journal)
    journal.revoked(_pairs(partitions))


def _commit(consumer: Consumer, journal: Journal) -> None:
    offsets = [TopicPartition(*where, at) for where, at in journal.uncommitted.items()]
    if not offsets:
        return
    commit = journal.committing()
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() in REFUSALS:
            journal.refused(commit, error.args[0])
    else:
        journal.committed(commit)


def _pairs(partitions: list[TopicPartition]) -> list[Partition]:
    return [(each.topic, each.partition) for each in partitions]


if __name__ == "__main__":
    main()
