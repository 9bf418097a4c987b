"""`Desk`: makes the handles of groups, partitions and transactions of one cluster."""

from __future__ import annotations

from embedlog.cluster.cluster import Cluster
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.connections import ConnectionValue, read_connections
from embedlog.testing.inspection.group_values import GroupValue
from embedlog.testing.inspection.groups import read_groups
from embedlog.testing.inspection.partition import Partition
from embedlog.testing.interception import ON_DEMAND, Stages
from embedlog.testing.on_demand.group import Group
from embedlog.testing.on_demand.pins import Pins
from embedlog.testing.on_demand.transaction import Transaction
from embedlog.testing.on_demand.transactions import Transactions
from embedlog.testing.stage_list import StageList


class Desk:
    """The handles of one cluster, which share its pins and its held transactions."""

    def __init__(self, cluster: Cluster, stages: Stages) -> None:
        self.brokers = Brokers(cluster)
        shared = StageList(stages, ON_DEMAND)
        self._pins = Pins(shared)
        self.transactions = Transactions(self.brokers, shared)

    def group(self, group_id: str) -> Group:
        return Group(self.brokers, self._pins, group_id)

    def groups(self) -> list[GroupValue]:
        return read_groups(self.brokers)

    def partition(self, topic: str, partition: int) -> Partition:
        return Partition(self.brokers, topic, partition)

    def transaction(self, transactional_id: str) -> Transaction:
        return Transaction(self.brokers, transactional_id)

    def connections(self) -> list[ConnectionValue]:
        return read_connections(self.brokers)
