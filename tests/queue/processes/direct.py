"""A queue straight over a share consumer, with the calls of `embedlog.Queue` that stories use."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import embedlog
from embedlog import AcknowledgeType, AlterOperation, ConfigResource, NewTopic

TOPIC = "jobs"
DEAD = "dlq.jobs"
GROUP = "jobs"
DELIVERY_LIMIT = 5
SETTINGS = {
    "share.auto.offset.reset": "earliest",
    "share.delivery.count.limit": DELIVERY_LIMIT,
    "errors.deadletterqueue.topic.name": DEAD,
    "errors.deadletterqueue.copy.record.enable": "true",
}


def create(cluster: embedlog.Cluster) -> None:
    """Make the topics, and the settings of the group."""
    with cluster.admin() as admin:
        letters = {"errors.deadletterqueue.group.enable": "true"}
        admin.create_topics([NewTopic(TOPIC, 1), NewTopic(DEAD, 1, configs=letters)]).check()
        changes = {name: (AlterOperation.SET, value) for name, value in SETTINGS.items()}
        admin.incremental_alter_configs({ConfigResource("group", GROUP): changes}).check()


class DirectJob:
    """A record that this process has acquired."""

    def __init__(self, queue: DirectQueue, record: embedlog.ShareRecord) -> None:
        self._queue = queue
        self._record = record
        self.value = bytes(record.value or b"").decode()
        self.deliveries = record.delivery_count

    def ack(self, *, wait: bool = True) -> None:  # noqa: ARG002
        """Accept the record, and wait."""
        self._queue.settle(self._record, AcknowledgeType.ACCEPT)

    def release(self) -> None:
        """Release the record, and wait."""
        self._queue.settle(self._record, AcknowledgeType.RELEASE)

    def reject(self, _reason: str) -> None:
        """Reject the record, and wait."""
        self._queue.settle(self._record, AcknowledgeType.REJECT)


class DirectQueue:
    """A share consumer and a producer."""

    def __init__(self, cluster: embedlog.SharedCluster) -> None:
        self.producer = cluster.producer()
        self.consumer = cluster.share_consumer(
            group_id=GROUP, share_acknowledgement_mode="explicit", max_poll_records=1,
            share_acquire_mode="record_limit",
        )  # fmt: skip
        self.consumer.subscribe([TOPIC])

    def put(self, value: str) -> None:
        """Append a job; return when it is durable."""
        self.producer.send(TOPIC, value.encode()).result(60)

    def get(self, timeout: float) -> DirectJob | None:
        """Return the next job, None for none."""
        for record in self.consumer.poll(int(timeout * 1000)):
            return DirectJob(self, record)
        return None

    def settle(self, record: embedlog.ShareRecord, kind: int) -> None:
        """Acknowledge a record, and wait; raise the error of the leader."""
        self.consumer.acknowledge(record, kind)
        for error in self.consumer.commit_sync().values():
            if error is not None:
                raise error

    def __enter__(self) -> DirectQueue:
        return self

    def __exit__(self, *_: type[BaseException] | TracebackType | BaseException | None) -> None:
        self.consumer.close()
        self.producer.close()


def left(admin: Any) -> int:
    """Return the number of jobs that are not settled; -1 if the group is unknown yet."""
    offsets = admin.list_share_group_offsets({GROUP: None})[GROUP]
    lags = [-1 if each is None else each.lag for each in offsets.values.values()]
    return sum(lags) if lags and min(lags) >= 0 else -1


def dead(path: str) -> list[str]:
    """Return the jobs of the dead letters."""
    with embedlog.open_reader(path) as reader:
        if DEAD not in reader.topics():
            return []
        records = reader.partition(DEAD, 0).records()
        return [bytes(record.value or b"").decode() for record in records]
