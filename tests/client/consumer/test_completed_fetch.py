"""One fetch taken in parts: the records are as written, however they are taken."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog.client.consumer.completed_fetch import CompletedFetch
from embedlog.client.consumer.subscription_state import PartitionState
from embedlog.client.errors import RecordUnreadable
from embedlog.common import TopicPartition
from tests.support import sizes
from wire.records import RecordBatch, build_batch, iter_batches, tuples
from wire.records.control import control_key
from wire.records.known import KNOWN
from wire.schemas.fetch import PartitionData

NOW = 1_700_000_000_000
KINDS = ("plain", "plain", "plain", "later", "keyed", "few", "zipped", "log time", "marker")


def batch_of(kind: str, base_offset: int, epoch: int) -> bytes:
    """Build a batch of ten records, or as the kind requires."""
    values = [b"%4d" % (base_offset + index) for index in range(3 if kind == "few" else 10)]
    more: dict[str, Any] = {"timestamps": NOW, "base_offset": base_offset, "leader_epoch": epoch}
    if kind == "later":
        more["timestamps"] = [NOW + index for index in range(10)]
    elif kind == "keyed":
        more["keys"] = [b"k"] * 10
    elif kind == "zipped":
        more["codec"] = 1
    elif kind == "log time":
        more["timestamp_type"] = 1
    elif kind == "marker":
        values = [b"\0" * 6]
        more |= {"keys": [control_key(1)], "control": True, "transactional": True}
    return bytes(build_batch(values, **more))


def fetched(data: bytes, offset: int, **more: Any) -> CompletedFetch:
    state = PartitionState(TopicPartition("t", 0))
    state.seek(offset)
    answer = PartitionData(partition_index=0, records=data)
    return CompletedFetch(state, answer, check_crcs=True, is_committed_only=False, **more)


def written(data: bytes, offset: int) -> list[tuple[int, int, Any]]:
    """The expected records from `offset` on, each with its batch's epoch and timestamp type."""
    return [
        (batch.partition_leader_epoch, batch.timestamp_type, record)
        for batch in iter_batches(data)
        if isinstance(batch, RecordBatch) and not batch.is_control
        for record in tuples(batch)
        if record[0] >= offset
    ]


@pytest.mark.slow
@pytest.mark.parametrize("many", [False, True])
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 9))),
    st.integers(0, 25),
    st.lists(st.integers(1, 70), min_size=1),
)
@settings(max_examples=sizes.size(80, full=200))
def test_it_is_handed_out_as_written_however_it_is_taken(
    many: bool, batches: list[tuple[str, int, int]], offset: int, counts: list[int]
) -> None:
    data, end, epoch = b"", 0, 0
    for kind, gap, newer in batches:
        epoch += newer == 1
        batch = batch_of(kind, end + (gap == 1), epoch)
        data, end = data + batch, RecordBatch(batch).next_offset
    expected = written(data, offset)
    fetch = fetched(data, offset)
    for number in range(10_000):
        count_max = counts[number % len(counts)]
        found = list(fetch.take(count_max, several=True) if many else fetch.take(count_max))
        if not found:
            break
        assert len(found) <= count_max
        assert [(*fetch.head[2:], record) for record in found] == expected[: len(found)]
        del expected[: len(found)]
        if expected:
            assert found[-1][0] < fetch.state.offset <= expected[0][2][0]
    assert not expected
    assert fetch.is_drained
    assert fetch.state.offset == max(offset, end)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", ["plain", "later", "keyed"])
def test_a_batch_with_a_wrong_checksum_is_not_handed_out(kind: str, many: bool) -> None:
    KNOWN.forget()  # there may also be batches of equal size but another layout
    good = b"".join(batch_of(kind, number * 10, 0) for number in range(4))
    bad = bytearray(batch_of(kind, 40, 0))
    bad[-3] ^= 1  # in the last value
    fetch = fetched(good + bytes(bad) + batch_of(kind, 50, 0), 0)
    take = partial(fetch.take, several=many)
    assert sum(len(take(100)) for _ in range(1 if many else 4)) == 40
    for _ in range(2):
        with pytest.raises(RecordUnreadable, match="offset 40"):
            take(100)
    assert fetch.state.offset == 40


def test_columns_after_records_go_on_in_the_same_batch() -> None:
    data = b"".join(batch_of("plain", number * 10, 0) for number in range(4))
    fetch = fetched(data, 0)
    assert len(fetch.take(100)) == 10
    assert [record[0] for record in fetch.take(4)] == [10, 11, 12, 13]
    taken = fetch.take_batch()
    assert taken is not None
    assert (taken[0].base_offset, taken[1]) == (10, 4)
    assert [record[0] for record in fetch.take(100)] == [*range(20, 30)]
    taken = fetch.take_batch()
    assert taken is not None
    assert (taken[0].base_offset, taken[1]) == (30, 0)
    assert fetch.take_batch() is None


@pytest.mark.parametrize("kind", ["plain", "keyed", "zipped"])
@pytest.mark.parametrize("count_max", [4, 100])
@pytest.mark.parametrize("index", [0, 3])
@pytest.mark.parametrize("many", [False, True])
def test_what_is_given_back_comes_again(kind: str, count_max: int, index: int, many: bool) -> None:
    data = b"".join(batch_of(kind, number * 10, 0) for number in range(4))
    fetch = fetched(data, 0)
    assert len(fetch.take(100)) == 10
    taken = list(fetch.take(count_max, several=True) if many else fetch.take(count_max))
    fetch.give_back(taken[index][0])
    assert fetch.state.offset == 10 + index
    again = [record for _ in range(9) for record in fetch.take(100)]
    assert [record[0] for record in again] == [*range(10 + index, 40)]
    assert again[: len(taken) - index] == taken[index:]


@given(st.lists(st.sampled_from(KINDS), min_size=1), st.integers(0, 90))
def test_the_end_is_that_of_the_last_whole_batch(kinds: list[str], cut_size: int) -> None:
    data, ends = b"", [(0, -1)]
    for kind in kinds:
        batch = batch_of(kind, 10 * len(ends), 0)
        data += batch
        ends.append((len(data), RecordBatch(batch).next_offset))
    size = max(len(data) - cut_size, 0)
    expected = [end_offset for end, end_offset in ends if end <= size]
    assert fetched(data[:size], 0).batches.end_offset == expected[-1]
