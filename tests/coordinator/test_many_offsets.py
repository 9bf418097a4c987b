"""More offsets than fit in one batch of `__consumer_offsets`.

Deletion and expiry write several batches. One commit is one batch, or is refused, as by Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.testing import SimFiles, sim_runtime
from tests.coordinator.test_offset_expiry import Rig
from tests.support.offsets import commit, commit_codes, delete, delete_codes
from wire.error_codes import ErrorCode
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState

COUNT = 100
SETTINGS = {
    "message.max.bytes": "1000",
    "offsets.topic.num.partitions": "1",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "60000",
}
OFFSETS: dict[Any, int] = {("many", number): number + 1 for number in range(COUNT)}


def make(files: SimFiles | None = None) -> Rig:
    """Return a cluster whose batches are at most 1,000 bytes, with a topic of many partitions."""
    runtime = sim_runtime(seed=3, files=files)
    rig = Rig(Cluster("data", SETTINGS, runtime=runtime), runtime)
    if "many" not in rig.cluster.topics:
        rig.cluster.create_topic("many", COUNT)
    return rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = make()
    for offset in OFFSETS.items():
        assert set(commit_codes(made.ask(commit("g", dict([offset])), 9)).values()) == {0}
    assert made.fetch() == OFFSETS
    yield made
    made.cluster.close()


def _again(rig: Rig) -> dict[Any, int]:
    """Return the offsets that a broker finds after a kill."""
    files = rig.runtime.files
    assert isinstance(files, SimFiles)
    again = make(files.survivor())
    try:
        return again.fetch()
    finally:
        again.cluster.close()


def test_many_offsets_of_one_commit_are_refused_together(rig: Rig) -> None:
    answer = rig.ask(commit("g", dict.fromkeys(OFFSETS, 7)), 9)
    assert set(commit_codes(answer).values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert rig.fetch() == _again(rig) == OFFSETS


def test_many_offsets_are_deleted(rig: Rig) -> None:
    answer = rig.ask(delete("g", [("many", number) for number in range(1, COUNT)]))
    assert set(delete_codes(answer).values()) == {0}
    assert rig.fetch() == _again(rig) == {("many", 0): 1}


def test_many_offsets_expire(rig: Rig) -> None:
    rig.pass_time(2 * 60_000)
    assert rig.fetch() == _again(rig) == {}
    assert rig.groups() == []


def test_many_offsets_go_with_their_topic(rig: Rig) -> None:
    answer = rig.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="many")], timeout_ms=9_000))
    assert answer.responses[0].error_code == 0, answer
    rig.pass_time(1_000)
    assert rig.fetch() == {}


def test_many_offsets_go_with_their_group(rig: Rig) -> None:
    (answer,) = rig.ask(DeleteGroupsRequest(groups_names=["g"])).results
    assert answer.error_code == 0
    assert rig.fetch() == _again(rig) == {}


def test_records_that_no_batch_can_hold_are_refused_and_logged(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    answer = rig.ask(commit("g", {("many", 0): 9}, metadata="x" * 4_000), 9)
    assert commit_codes(answer) == {("many", 0): ErrorCode.UNKNOWN_SERVER_ERROR}
    assert "__consumer_offsets-0: an operation has 1 records" in caplog.text
    assert rig.fetch() == OFFSETS
