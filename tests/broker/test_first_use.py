"""Partitions are hosted on first use, also by several threads at once."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

import embedlog
from embedlog.broker.context import RequestContext
from embedlog.replication.leader_and_isr import LeaderAndIsr
from embedlog.replication.partition import Partition
from tests.golden.batches import simple
from tests.golden.requests import produce
from wire.error_codes import ErrorCode


def test_nobody_finds_a_partition_before_it_is_known_who_leads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster:
        cluster.create_topic("t", 1)
    codes: list[int] = []
    others: list[Thread] = []
    apply = Partition.apply

    def slowly(self: Partition, state: LeaderAndIsr, node_id: int) -> None:
        other = Thread(target=ask)
        other.start()
        other.join(0.2)
        others.append(other)
        apply(self, state, node_id)

    with embedlog.open(tmp_path, durability="os") as cluster:

        def ask() -> None:
            answer = cluster.broker().core.handle(
                RequestContext(0, 9), produce(("t", b""), 9, simple(b"v"))
            )
            codes.append(answer.responses[0].partition_responses[0].error_code)

        monkeypatch.setattr(Partition, "apply", slowly)
        ask()
        others[0].join()
    assert codes == [ErrorCode.NONE, ErrorCode.NONE]
