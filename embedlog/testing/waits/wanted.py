"""`Wanted`: makes the conditions from a test's arguments. Misspelt names are refused here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from embedlog.common import TopicPartition
from embedlog.errors import ConfigError
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import STATES as GROUP_STATES
from embedlog.testing.inspection.log_records import ISOLATIONS
from embedlog.testing.inspection.transactions import STATES as TRANSACTION_STATES
from embedlog.testing.interception import WAITS, Stages
from embedlog.testing.names import check_name
from embedlog.testing.stage_list import StageList
from embedlog.testing.waits import groups, others, partitions, requests
from wire.api_keys import NAMES

T = TypeVar("T")


class Wanted:
    """The conditions of one cluster.

    Conditions wake every waiting thread of the cluster: few wait at a time, and each looks itself.
    """

    def __init__(self, brokers: Brokers, stages: Stages) -> None:
        self.brokers = brokers
        self._stages = StageList(stages, WAITS)
        self._wake = self.brokers.signals.changed

    def group(
        self, group_id: str, state: str | None, members: int | None, assigned: int | None
    ) -> groups.Shape:
        return groups.Shape(
            self.brokers,
            _text("group", group_id),
            state=None if state is None else check_name("state", state, GROUP_STATES),
            members=None if members is None else _count("members", members),
            assigned=None if assigned is None else _count("assigned", assigned),
        )

    def rebalanced(self, group_id: str, since: int | None) -> groups.Rebalanced:
        return groups.Rebalanced(self.brokers, _text("group", group_id), since)

    def lag(self, group_id: str, lag: int, topics: Collection[str], isolation: str) -> groups.Lag:
        if isinstance(topics, str):
            topics = (topics,)
        for topic in topics:
            self.brokers.check_topic(topic)
        return groups.Lag(
            self.brokers,
            _text("group", group_id),
            _count("lag", lag),
            topics=list(topics),
            isolation=check_name("isolation", isolation, ISOLATIONS),
            wake=self._wake,
        )

    def committed(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> groups.Committed:
        if not offsets:
            raise ConfigError("committed: expected (topic, partition): offset, got nothing")
        checked = {
            self.brokers.check_partition(*place): _count(f"offset of {place}", offset)
            for place, offset in offsets.items()
        }
        return groups.Committed(self.brokers, _text("group", group_id), checked)

    def records(
        self, topic: str, count: int, partition: int | None, isolation: str
    ) -> partitions.Records:
        known = check_name("isolation", isolation, ISOLATIONS)
        if partition is None:
            numbers = range(self.brokers.check_topic(topic))
            places = [TopicPartition(topic, number) for number in numbers]
        else:
            places = [self.brokers.check_partition(topic, partition)]
        return partitions.Records(
            self.brokers, places, _count("count", count), isolation=known, wake=self._wake
        )

    def isr(self, topic: str, partition: int, isr: Collection[int]) -> partitions.Replicas:
        place = self.brokers.check_partition(topic, partition)
        for node_id in isr:
            self._check_node(node_id)
        return partitions.Replicas(self.brokers, place, frozenset(isr))

    def leader(self, topic: str, partition: int, node_id: int | None) -> partitions.Leader:
        place = self.brokers.check_partition(topic, partition)
        if node_id is not None:
            self._check_node(node_id)
        return partitions.Leader(self.brokers, place, node_id)

    def request(
        self,
        api: str,
        client_id: str | None,
        node_id: int | None,
        times: int,
        where: Callable[[Any], object] | None,
    ) -> requests.Requests:
        by_name = {name: api_key for api_key, name in NAMES.items()}
        name = check_name("request", api, by_name)
        if node_id is not None:
            self._check_node(node_id)
        return requests.Requests(
            self._stages,
            by_name[name],
            client_id=client_id,
            node_id=node_id,
            times=_count("times", times),
            where=where,
            wake=self._wake,
        )

    def transaction(self, transactional_id: str, state: str) -> others.TransactionState:
        known = check_name("state", state, TRANSACTION_STATES)
        return others.TransactionState(self.brokers, _text("transaction", transactional_id), known)

    def until(self, function: Callable[[], T], describe: str | None) -> others.Function[T]:
        if not callable(function):
            raise ConfigError(f"until({function!r}): expected a function")
        return others.Function(self.brokers, self._stages, function, describe, self._wake)

    def _check_node(self, node_id: int) -> None:
        known = [each.node_id for each in self.brokers.cluster.brokers]
        if node_id not in known:
            raise ConfigError(f"there is no broker {node_id!r}, only {known}")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} {value!r}: expected a name")
    return value


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(f"{name}={value!r}: expected a number from 0 on")
    return value
