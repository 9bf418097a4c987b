"""Random transactions from a seed: requests of all versions, correct and nearly correct.

Two transactional ids, two groups and three partitions. A walk knows them only from answers, so
another broker gets the same requests as long as it gives the same answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.golden.group_requests import commit, delete_groups, delete_offsets, fetch_offsets
from tests.golden.requests import fetch, list_offsets, make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.transaction_requests import (
    RETRIED,
    Producer,
    add,
    add_offsets,
    batch,
    end,
    init,
    markers,
    register,
    settle,
    transaction,
    txn_commit,
    warm_up_transactions,
)
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.describe_producers import DescribeProducersRequest, TopicRequest
from wire.schemas.describe_transactions import DescribeTransactionsRequest

PARTITIONS = 3
STEPS = 60
STEP_MS = 2
"""Keeps the times of markers apart: the offset of the latest time would depend on the machine."""
SEEDS = "abcdefgh"
NEARLY = 0.12
"""Share of values in requests that are wrong on purpose."""


class Walk:
    """One walk: its knowledge, and its possible steps."""

    def __init__(self, run: Run, seed: str) -> None:
        self.run = run
        self.chance = random.Random(seed)
        # Keep one segment, although markers are years newer than the records: a fetch reads one
        # segment.
        self.topic = make_topic(run, partitions=PARTITIONS, segment_ms=str(2**63 - 1))
        self.names = [run.group("one"), run.group("two")]
        self.groups = [run.group("g0"), run.group("g1")]
        self.producers: dict[str, Producer] = {}
        self.sequences: dict[tuple[Producer, int], int] = {}
        self.steps: list[tuple[int, Callable[[], None]]] = [
            (3, self.init),
            (6, self.add),
            (3, self.register),
            (4, self.add_offsets),
            (14, self.produce),
            (2, self.produce_plain),
            (9, self.commit_offsets),
            (11, self.end),
            (2, self.commit_plain),
            (1, self.delete_offsets),
            (1, self.delete_group),
            (1, self.delete_records),
            (1, self.write_marker),
            (6, self.read_offsets),
            (5, self.read),
            (3, self.list_offsets),
            (3, self.describe_producers),
            (3, self.describe),
        ]

    def go(self) -> None:
        """Begin with both ids, then take `STEPS` steps."""
        for name in self.names:
            self._owned(name, self.run.send(init(name), 5, "begin"))
        weights = [weight for weight, _ in self.steps]
        for _ in range(STEPS):
            (taken,) = self.chance.choices(self.steps, weights)
            taken[1]()
            self.run.let_pass(STEP_MS)

    # Chance

    def _version(self, first: int, last: int) -> int:
        return last if self.chance.random() < 0.4 else self.chance.randint(first, last)

    def _rarely(self) -> bool:
        return self.chance.random() < NEARLY

    def _name(self) -> str:
        return self.chance.choice(self.names)

    def _who(self, name: str) -> Producer:
        pid, epoch = self.producers[name]
        if self._rarely():
            epoch += self.chance.choice((-1, 1))
        if self.chance.random() < NEARLY / 4:
            pid += 7000
        return pid, max(epoch, 0)

    def _partition(self) -> int:
        return PARTITIONS + 4 if self.chance.random() < NEARLY / 4 else self.chance.randrange(3)

    def _owned(self, name: str, answer: object) -> None:
        pid, epoch, code = (
            getattr(answer, field) for field in ("producer_id", "producer_epoch", "error_code")
        )
        if code == 0 and pid >= 0:
            self.producers[name] = pid, epoch

    # Steps

    def init(self) -> None:
        """InitProducerId, repeated while the coordinator is busy."""
        name, version = self._name(), self._version(0, 5)
        who = self._who(name) if version >= 3 and self.chance.random() < 0.4 else (-1, -1)
        answer = self.run.send(init(name, who), version, "init")
        settle(self.run, name)
        if answer.error_code in RETRIED:
            answer = self.run.send(init(name, who), version, "init again")
        self._owned(name, answer)

    def add(self) -> None:
        """AddPartitionsToTxn of a client."""
        name = self._name()
        places = [(self.topic, self._partition()) for _ in range(self.chance.randint(1, 2))]
        self.run.send(add(name, self._who(name), *places), self._version(0, 3), "add")

    def register(self) -> None:
        """AddPartitionsToTxn of a broker."""
        name, looks = self._name(), self.chance.random() < 0.5
        one = transaction(name, self._who(name), (self.topic, self._partition()), verify_only=looks)
        self.run.send(register(one), self._version(4, 5), "verify" if looks else "register")

    def add_offsets(self) -> None:
        """AddOffsetsToTxn."""
        name, group = self._name(), self.chance.choice(self.groups)
        self.run.send(add_offsets(name, self._who(name), group), self._version(0, 4), "add offsets")

    def produce(self) -> None:
        """Produce, transactional."""
        name, partition, version = self._name(), self._partition(), self._version(3, 13)
        who = self._who(name)
        sequence = self.sequences.get((who, partition), 0)
        if self.chance.random() < NEARLY / 3:
            sequence += 2
        values = [b"v"] * self.chance.randint(1, 3)
        request = produce(
            self.topic,
            version,
            batch(who, *values, sequence=sequence),
            transactional_id=name,
            partition=partition,
        )
        answer = self.run.send(request, version, f"produce {partition} from {sequence}")
        if answer.responses[0].partition_responses[0].error_code == 0:
            self.sequences[who, partition] = sequence + len(values)

    def produce_plain(self) -> None:
        """Produce, without a transaction."""
        version, partition = self._version(3, 13), self.chance.randrange(PARTITIONS)
        data = batch((-1, -1), b"plain", sequence=-1, transactional=False)
        request = produce(self.topic, version, data, partition=partition)
        self.run.send(request, version, f"produce {partition}, plain")

    def commit_offsets(self) -> None:
        """TxnOffsetCommit."""
        name, group, version = self._name(), self.chance.choice(self.groups), self._version(0, 6)
        row = self._partition(), self.chance.randrange(100)
        generation = self.chance.choice((0, 3)) if version >= 3 and self._rarely() else -1
        request = txn_commit(
            name, self._who(name), group, self.topic, row, version=version, generation=generation
        )
        self.run.send(request, version, f"commit {row[1]}")

    def end(self) -> None:
        """EndTxn."""
        name, commits = self._name(), self.chance.random() < 0.6
        version = self._version(0, 5)
        request = end(name, self._who(name), commit=commits)
        answer = self.run.send(request, version, "commit" if commits else "abort")
        settle(self.run, name)
        self._owned(name, answer)

    def commit_plain(self) -> None:
        """OffsetCommit, without a transaction."""
        group, row = self.chance.choice(self.groups), (self.chance.randrange(PARTITIONS), 1000)
        self.run.send(commit(group, self.topic, row), 9, "a plain commit")

    def delete_offsets(self) -> None:
        """OffsetDelete."""
        wanted = self.topic[0], [self.chance.randrange(PARTITIONS)]
        self.run.send(delete_offsets(self.chance.choice(self.groups), wanted), 0, "delete offsets")

    def delete_group(self) -> None:
        """DeleteGroups."""
        self.run.send(delete_groups(self.chance.choice(self.groups)), 2, "delete a group")

    def delete_records(self) -> None:
        """DeleteRecords, even in the middle of a transaction."""
        row = DeleteRecordsPartition(
            partition_index=self.chance.randrange(PARTITIONS), offset=self.chance.choice((-1, 2))
        )
        topic = DeleteRecordsTopic(name=self.topic[0], partitions=[row])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=5000)
        self.run.send(request, 2, "delete records")

    def write_marker(self) -> None:
        """WriteTxnMarkers, as from an administrator who ends a hanging transaction.

        It has the present coordinator's epoch: a later one would fence the coordinator for good.
        """
        name, version = self._name(), self._version(1, 2)
        request = markers(
            self._who(name),
            (self.topic, self._partition()),
            commit=self.chance.random() < 0.3,
            transaction_version=self.chance.randint(0, 2) if version == 2 else 0,
        )
        self.run.send(request, version, "write a marker")

    def read_offsets(self) -> None:
        """OffsetFetch."""
        group, stable = self.chance.choice(self.groups), self.chance.random() < 0.7
        request = fetch_offsets(group, everything=True, require_stable=stable)
        self.run.send(request, self._version(8, 9), "stable offsets" if stable else "offsets")

    def read(self) -> None:
        """Fetch, with both isolation levels."""
        version, partition = self._version(4, 13), self.chance.randrange(PARTITIONS)
        start = self.chance.choice((0, 0, 1, 4))
        for isolation in (0, 1):
            request = fetch(
                self.topic, version, start, partition=partition, isolation_level=isolation
            )
            self.run.send(request, version, f"fetch {partition} at {start}, {isolation}")

    def list_offsets(self) -> None:
        """ListOffsets, with both isolation levels."""
        version, partition = self._version(2, 10), self.chance.randrange(PARTITIONS)
        timestamp = self.chance.choice((-1, -1, -2, 0, -3) if version >= 7 else (-1, -1, -2, 0))
        for isolation in (0, 1):
            request = list_offsets(
                self.topic[0], timestamp, partition=partition, isolation_level=isolation
            )
            self.run.send(request, version, f"offset {timestamp} of {partition}, {isolation}")

    def describe_producers(self) -> None:
        """DescribeProducers."""
        rows = [TopicRequest(name=self.topic[0], partition_indexes=list(range(PARTITIONS)))]
        self.run.send(DescribeProducersRequest(topics=rows), 0, "producers")

    def describe(self) -> None:
        """DescribeTransactions."""
        self.run.send(DescribeTransactionsRequest(transactional_ids=self.names), 0, "described")


def _register(seed: str) -> None:
    def walk(run: Run) -> None:
        warm_up_transactions(run)
        Walk(run, seed).go()

    walk.__name__ = f"transactional_walk_{seed}"
    walk.__doc__ = f"The walk of seed {seed}."
    scenario_on("transactions")(walk)


for _seed in SEEDS:
    _register(_seed)
