"""Comparing offsets gives the same result for a fetch as reading."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from embedlog.errors import CorruptRecord, KafkaError
from embedlog.replication.fetch_params import FetchParams
from embedlog.replication.fetch_reader import is_at_end, read_partition, readable_size
from embedlog.replication.fetch_session import FetchPartition
from embedlog.replication.partition import Partition
from tests.golden.batches import simple
from tests.replication.conftest import Rig
from tests.support import sizes
from wire.schemas import fetch

MakeRig = Callable[..., Rig]
END = 4
BY_NAME, BY_ID = 12, 13
OTHER_ID = b"other topic's id"


@pytest.fixture
def partition(make_rig: MakeRig) -> Partition:
    """Offsets 0 to 4 in two segments; a read_committed reader stops at offset 2."""
    rig = make_rig()
    made = rig.cluster.create_topic("t", 1)
    partition = rig.manager.partition(made.name, 0)
    for number in range(END):
        rig.manager.append(partition, simple(b"abc"), acks=1)
        if number == 0:
            with partition.lock:
                partition.log.roll()
    return partition


def ask(
    partition: Partition, version: int, *, min_bytes: int = 1, isolation: int = 0, **how: int
) -> tuple[FetchParams, FetchPartition]:
    replica_id = how.pop("replica_id", -1)
    topic_id = OTHER_ID if how.pop("is_other", 0) else partition.topic_id
    request = fetch.FetchRequest(
        replica_id=replica_id, min_bytes=min_bytes, isolation_level=isolation
    )
    how.setdefault("partition_max_bytes", 1 << 20)
    asked = FetchPartition("t", topic_id, fetch.FetchPartition(**how))
    return FetchParams(version, request, 1 << 20), asked


def outcome(partition: Partition, params: FetchParams, asked: FetchPartition) -> str:
    """Return the result of reading: "records", "nothing" or "news", which must be sent."""
    try:
        found = read_partition(partition, params, asked, room=params.max_bytes, min_one=True)
    except (KafkaError, CorruptRecord):
        return "news"
    if found.diverging_epoch.epoch >= 0:
        return "news"
    return "records" if found.records else "nothing"


ASKED = st.fixed_dictionaries(
    {},
    optional={
        "fetch_offset": st.integers(-1, END + 1),
        "current_leader_epoch": st.integers(-2, 2),
        "last_fetched_epoch": st.integers(-1, 1),
        "partition_max_bytes": st.sampled_from([-1, 0, 1, 1 << 20]),
        "replica_id": st.integers(-2, 1),
        "is_other": st.integers(0, 1),
    },
)


@pytest.mark.slow
@settings(
    max_examples=sizes.size(120, full=300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    version=st.sampled_from([BY_NAME, BY_ID]),
    isolation=st.integers(0, 1),
    unstable=st.sampled_from([None, 2]),
    is_leader=st.booleans(),
    asked=ASKED,
)
@example(version=BY_ID, isolation=0, unstable=2, is_leader=True, asked={"fetch_offset": END})
@example(version=BY_ID, isolation=1, unstable=2, is_leader=True, asked={"fetch_offset": 2})
def test_what_compares_as_read_reads_as_nothing(
    partition: Partition,
    version: int,
    isolation: int,
    unstable: int | None,
    is_leader: bool,
    asked: dict[str, int],
) -> None:
    partition.is_leader = is_leader
    partition.log.transactions.first_unstable_offset = unstable
    wanted = ask(partition, version, isolation=isolation, **asked)
    found = outcome(partition, *wanted)
    end = END if isolation == 0 or unstable is None else unstable
    is_plain = asked.get("last_fetched_epoch", -1) < 0 and asked.get("fetch_offset", 0) == end
    assert is_at_end(partition, *wanted) == (found == "nothing" and is_plain)
    try:
        is_worth_an_answer = readable_size(partition, *wanted) > 0
    except (KafkaError, CorruptRecord):
        is_worth_an_answer = True
    if found == "records":
        assert is_worth_an_answer
    elif found == "nothing":
        # An empty answer because of a limit is no reason to wait either.
        assert not is_worth_an_answer or asked.get("fetch_offset", 0) < end


def test_nobody_waits_where_the_log_ends_with_rot(partition: Partition) -> None:
    wanted = ask(partition, BY_ID, fetch_offset=END)
    assert is_at_end(partition, *wanted)
    partition.log.health.poison(CorruptRecord("some.log", 0, "rotten"))
    assert outcome(partition, *wanted) == "news"
    assert not is_at_end(partition, *wanted)
