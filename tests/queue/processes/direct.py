"""A queue straight over a share consumer, for stories: see `over_queue` for the functions."""

from __future__ import annotations

import random
from types import TracebackType

import embedlog
from embedlog import AcknowledgeType, AlterOperation, ConfigResource, NewTopic
from tests.queue.processes import events

POISON = 17
"""Every 17th job is released by all its workers, until its deliveries are used up."""
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

    def settle(self, kind: int) -> None:
        """Acknowledge the record, and wait."""
        self._queue.settle(self._record, kind)


class DirectQueue:
    """A share consumer and a producer."""

    def __init__(self, cluster: embedlog.SharedCluster) -> None:
        self.admin = cluster.admin()
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
        self.admin.close()


OUTCOMES = {
    AcknowledgeType.ACCEPT: events.ACKED,
    AcknowledgeType.RELEASE: events.RELEASED,
    AcknowledgeType.REJECT: events.REJECTED,
}
COPYING: tuple[int, ...] = ()
FETCHES_AHEAD = False
PENDING = (events.PUT, events.GOT)
"""Last events of jobs that have to come again. A released job may be dead."""


def open_queue(cluster: embedlog.SharedCluster) -> DirectQueue:
    """Return the queue."""
    return DirectQueue(cluster)


def put(queue: DirectQueue, job: str, _chance: random.Random) -> None:
    """Put a job."""
    queue.put(job)


def choose(job: DirectJob, chance: float) -> int:
    """Return what the worker does with a job."""
    if int(job.value.rpartition("-")[2]) % POISON == POISON - 1 or chance < 0.1:
        return AcknowledgeType.RELEASE
    return AcknowledgeType.REJECT if chance < 0.15 else AcknowledgeType.ACCEPT


def settle(job: DirectJob, chosen: int) -> str:
    """Settle a job; return the kind of the outcome."""
    job.settle(chosen)
    return OUTCOMES[chosen]


def left(queue: DirectQueue) -> int:
    """Return the number of jobs that are not settled; -1 if the group is unknown yet."""
    offsets = queue.admin.list_share_group_offsets({GROUP: None})[GROUP]
    lags = [-1 if each is None else each.lag for each in offsets.values.values()]
    return sum(lags) if lags and min(lags) >= 0 else -1


def dead(path: str) -> list[str]:
    """Return the jobs of the dead letters."""
    with embedlog.open_reader(path) as reader:
        if DEAD not in reader.topics():
            return []
        records = reader.partition(DEAD, 0).records()
        return [bytes(record.value or b"").decode() for record in records]
