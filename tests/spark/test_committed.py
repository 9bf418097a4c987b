"""The committed offsets of groups, read from the files of a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from embedlog.broker.context import RequestContext
from embedlog.common import TopicPartition
from embedlog.spark.access.directory import DirectoryAccess
from tests.spark.logs import filled
from wire.api_keys import ApiKey
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

KEY = TopicPartition("t", 0)


def _committed(path: Path) -> dict[TopicPartition, int]:
    access = DirectoryAccess(str(path), read_committed=False)
    try:
        return access.committed("g")
    finally:
        access.close()


def test_a_deleted_offset_is_none(tmp_path: Path) -> None:
    with filled(tmp_path, {"t": [10]}) as cluster, cluster.admin() as admin:
        admin.alter_group_offsets("g", {KEY: 4}).check()
        assert _committed(tmp_path) == {KEY: 4}
        admin.delete_group_offsets("g", [KEY])
        assert _committed(tmp_path) == {}


def _ask(cluster: Any, api_key: int, version: int, request: Any) -> Any:
    core = cluster.broker().core
    answer = core.handle(RequestContext(api_key, version), request)
    if hasattr(answer, "done"):
        assert core.runtime.scheduler.wait(answer, 10_000)
        return answer.result()
    return answer


def test_an_offset_of_an_open_transaction_does_not_count(tmp_path: Path) -> None:
    with filled(tmp_path, {"t": [10]}) as cluster, cluster.admin() as admin:
        admin.alter_group_offsets("g", {KEY: 4}).check()
        with cluster.producer(transactional_id="x") as producer:
            producer.init_transactions()  # makes the topic of transactions
        begin = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
        made = _ask(cluster, ApiKey.INIT_PRODUCER_ID, 5, begin)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        commit = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=made.producer_id,
            producer_epoch=made.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        answer = _ask(cluster, ApiKey.TXN_OFFSET_COMMIT, 5, commit)
        assert answer.topics[0].partitions[0].error_code == 0
        assert _committed(tmp_path) == {KEY: 4}
