"""The table of the control door: everything that a test in another language can call.

To offer a method, add its name to the line of its noun. A new kind of object is a new `Noun`, with
a function that reaches it from `Kafka`. Parameters, types, texts and the OpenAPI page follow from
the signature and the docstring of the method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from embedlog.cluster.cluster import Cluster
from embedlog.cluster.faults.network import ClusterNetwork
from embedlog.cluster.handles.broker_disk import BrokerDisk
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.cluster.handles.cluster_controller import ClusterController
from embedlog.testing.control import reaching as reach
from embedlog.testing.control.verbs import Noun, Table
from embedlog.testing.faults.faults import Faults
from embedlog.testing.faults.hold import Hold
from embedlog.testing.faults.presets import Presets
from embedlog.testing.faults.rule import FaultRule
from embedlog.testing.faults.waiting import HeldRequest
from embedlog.testing.inspection.partition import Partition
from embedlog.testing.on_demand.group import Group
from embedlog.testing.on_demand.transaction import Transaction
from embedlog.testing.on_demand.transactions import HeldTransaction, Transactions
from embedlog.testing.registry.faults import RegistryFault
from embedlog.testing.registry.registry import Registry
from embedlog.testing.snapshots.snapshot import Snapshot
from embedlog.testing.time.kafka_clock import KafkaClock
from embedlog.testing.timeline.recording import Recording
from embedlog.testing.topics.produced import Produces, ProducesNothing
from embedlog.testing.topics.topic import Topic
from embedlog.testing.topics.transactions import OpenTransaction
from embedlog.testing.toxics.toxic import Toxic
from embedlog.testing.waits.waits import Waits

_KAFKA = (
    "bootstrap_servers create_topic brokers client_config commit assert_produces"
    " assert_nothing_produced fault hold blackhole toxic cut_connections groups connections"
    " maintain name record snapshot restore reset save watch_leaks leaks"
)
_RULE = ".number hits seen requests is_removed wait remove check"
_PRESETS = " ".join(name for name in vars(Presets) if name[0] != "_" and name != "add")


@cache
def table(root: Any) -> Table:
    """Return the table. `root` is the class `Kafka`, which this package may not import."""
    return Table(
        (
            Noun(
                "",
                root,
                _KAFKA,
                reach.kafka,
                like={"toxic": Toxic.__init__, "create_topic": Cluster.create_topic},
            ),
            *_cluster(),
            *_topics(root),
            *_faults(root),
            *_coordinators(),
            Noun(
                "wait",
                Waits,
                "group rebalanced lag committed records isr leader request transaction",
                reach.waits,
            ),
            Noun(
                "clock",
                KafkaClock,
                ".mode now now_ms follow timers jump leap_count expire_sessions"
                " expire_transactions",
                reach.clock,
            ),
            Noun("snapshot", Snapshot, "size save", of_kafka={"take": root.snapshot}),
            Noun(
                "recording",
                Recording,
                ".began_wall_ms dropped events of_kind requests count note write_json_lines"
                " write_pcap end",
                of_kafka={"begin": root.record},
                functions={"text": reach.text},
                like={"count": Recording.requests},
            ),
            *_registry(),
        )
    )


def _cluster() -> tuple[Noun, ...]:
    return (
        Noun(
            "broker",
            BrokerNode,
            "node_id rack is_running is_paused address start stop kill pause resume hide show"
            " hold_metadata release_metadata",
            reach.broker,
            reach.broker_key,
        ),
        Noun("broker disk", BrokerDisk, "directories fill free slow fail repair", reach.disk),
        Noun(
            "partition",
            Partition,
            "leader leader_epoch replicas isr start leo hw lso end_offsets high_watermarks"
            " producers epochs move_to reassign hold release",
            reach.partition,
            reach.partition_key,
        ),
        Noun("network", ClusterNetwork, "split cut delay freeze thaw heal is_cut", reach.network),
        Noun("controller", ClusterController, "is_running stop start", reach.controller),
    )


def _topics(root: Any) -> tuple[Noun, ...]:
    like: dict[str, Callable[..., Any]] = dict.fromkeys(
        ("values", "keys", "last", "only", "dump"), Topic.records
    )
    like["tombstone"] = Topic.put
    return (
        Noun(
            "topic",
            Topic,
            "records values keys last only ends put put_many tombstone skip transaction put_aborted"
            " fill load dump delete_records",
            reach.topic,
            like=like,
        ),
        Noun(
            "open_transaction",
            OpenTransaction,
            ".transactional_id is_open put put_many commit abort",
            functions={"end": reach.end},
        ),
        Noun(
            "assert_produces",
            Produces,
            "values keys",
            of_kafka={"begin": root.assert_produces},
            functions={"records": reach.new_records, "end": reach.end_assertion},
            begin=Produces.__enter__,
        ),
        Noun(
            "assert_nothing_produced",
            ProducesNothing,
            "values keys",
            of_kafka={"begin": root.assert_nothing_produced},
            functions={"records": reach.new_records, "end": reach.end_assertion},
            begin=ProducesNothing.__enter__,
        ),
    )


def _faults(root: Any) -> tuple[Noun, ...]:
    return (
        Noun(
            "faults",
            Faults,
            f"add {_PRESETS} clear",
            reach.faults,
            of_kafka={"list": reach.rules},
        ),
        Noun(
            "hold",
            Hold,
            f"{_RULE} held release",
            of_kafka={"add": root.hold, "list": reach.holds},
            functions={"end": reach.end},
        ),
        Noun(
            "fault",
            FaultRule,
            _RULE,
            of_kafka={"add": root.fault, "list": reach.rules},
            functions={"end": reach.end},
        ),
        Noun("held_request", HeldRequest, "api client_id node_id is_held release cut"),
        Noun(
            "toxic",
            Toxic,
            ".connections .direction remove",
            of_kafka={"add": root.toxic},
            functions={"end": reach.end},
            like={"toxic": Toxic.__init__},
        ),
    )


def _coordinators() -> tuple[Noun, ...]:
    return (
        Noun(
            "group",
            Group,
            "value exists state protocol members epoch generation committed lag lags rebalance"
            " expel assign configure commit delete",
            reach.group,
        ),
        Noun(
            "transaction",
            Transaction,
            "value exists state producer_id epoch partitions timeout_ms fence expire abort",
            reach.transaction,
        ),
        Noun("transactions", Transactions, "__call__ hold", reach.transactions),
        Noun(
            "held_transaction",
            HeldTransaction,
            ".transactional_id .at .is_released is_holding wait release",
            functions={"end": reach.end},
        ),
    )


def _registry() -> tuple[Noun, ...]:
    return (
        Noun(
            "registry",
            Registry,
            "url register subjects versions schema_by_id set_compatibility require_user"
            " client_config fault requests",
            reach.registry,
        ),
        Noun(
            "registry_fault",
            RegistryFault,
            ".what hits seen requests wait remove check",
            functions={"end": reach.end},
        ),
    )
