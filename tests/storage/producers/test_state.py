"""Producer state: duplicates, epochs, sequences, transactions, stable offset, snapshots."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.storage.producers import snapshot
from embedlog.storage.producers.entry import (
    Duplicate,
    ProducerStateEntry,
    ProducerUpdate,
    VerificationState,
)
from embedlog.storage.producers.state import ProducerStateManager
from embedlog.storage.validation.origin import AppendOrigin
from wire.records.batch import RecordBatch
from wire.records.encode.builder import build_batch
from wire.records.retain import empty_batch

CLIENT, COORDINATOR = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR
REPLICATION = AppendOrigin.REPLICATION
SEQUENCE_MAX = 2**31 - 1
NOW = 1_700_000_000_000


def batch(
    sequence: int,
    count: int = 1,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    timestamp: int = NOW,
    transactional: bool = False,
) -> SimpleNamespace:
    return SimpleNamespace(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        last_offset_delta=count - 1,
        max_timestamp=timestamp,
        is_transactional=transactional,
    )


class Partition:
    """A log that only counts offsets."""

    def __init__(self, expiration_ms: int = 86_400_000) -> None:
        self.state = ProducerStateManager(expiration_ms, TopicPartition("topic", 0))
        self.end = 0
        self.aborted: list = []

    def append(
        self, sequence: int, count: int = 1, *, origin: int = CLIENT, verification=None, **kw
    ):
        """Return the base offset of the written batch, or the Duplicate."""
        facts = batch(sequence, count, **kw)
        update = self.state.prepare(
            facts, first_offset=self.end, origin=origin, verification=verification
        )
        if isinstance(update, Duplicate):
            return update
        if update is not None:
            self.state.apply(update)
        base_offset = self.end
        self.end += count
        return base_offset

    def mark(
        self, *, commit: bool, producer_id: int = 7, epoch: int = 0, coordinator: int = 0, **kw
    ):
        update = self.state.prepare_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator,
            committed=commit,
            timestamp=NOW,
            offset=self.end,
            origin=kw.pop("origin", COORDINATOR),
            **kw,
        )
        aborted = self.state.apply(update)
        if aborted is not None:
            self.aborted.append(aborted)
        self.end += 1
        return update


@pytest.fixture
def log() -> Partition:
    return Partition()


# Sequences


@pytest.mark.parametrize("producer_id", [-1, -2])
def test_a_batch_without_a_producer_leaves_no_trace(log, producer_id):
    assert (
        log.state.prepare(batch(-1, producer_id=producer_id), first_offset=0, origin=CLIENT) is None
    )
    assert len(log.state) == 0


def test_consecutive_batches_are_accepted(log):
    assert [log.append(0, 3), log.append(3, 2), log.append(5)] == [0, 3, 5]
    entry = log.state.get(7)
    assert entry is not None
    assert (entry.last_sequence, entry.last_data_offset, entry.last_timestamp) == (5, 5, NOW)


@pytest.mark.parametrize("first", [0, 5, SEQUENCE_MAX])
def test_an_unknown_producer_may_start_anywhere(log, first):
    assert log.append(first) == 0


@pytest.mark.parametrize("sequence", [4, 6, 0, 2, SEQUENCE_MAX])
def test_a_gap_is_refused_and_changes_nothing(log, sequence):
    log.append(0, 5)
    with pytest.raises(errors.OutOfOrderSequenceNumber) as caught:
        log.append(sequence, 2)
    assert caught.value.code == 45
    assert "7 at offset 5 in partition topic-0" in str(caught.value)
    assert f"{sequence} (incoming seq. number), 4 (current end sequence number)" in str(
        caught.value
    )
    assert log.append(5) == 5


def test_sequences_wrap_to_zero(log):
    assert log.append(SEQUENCE_MAX - 1, 2) == 0
    assert log.append(0, 3) == 2
    assert log.append(3) == 5


def test_a_batch_may_span_the_wrap(log):
    log.append(SEQUENCE_MAX - 3, 2)
    assert log.append(SEQUENCE_MAX - 1, 4) == 2  # ... 2^31-2, 2^31-1, 0, 1
    assert log.state.get(7).last_sequence == 1
    assert log.append(2) == 6
    repeated = log.append(SEQUENCE_MAX - 1, 4)
    assert isinstance(repeated, Duplicate)
    assert repeated.base_offset == 2


@pytest.mark.parametrize("sequence", [1, SEQUENCE_MAX])
def test_after_the_last_sequence_only_zero_follows(log, sequence):
    log.append(SEQUENCE_MAX)
    with pytest.raises(errors.OutOfOrderSequenceNumber):
        log.append(sequence, 2)


def test_the_last_five_batches_are_recognised(log):
    for sequence in range(7):
        log.append(sequence, timestamp=NOW + sequence)
    for sequence in range(2, 7):
        found = log.append(sequence)
        assert isinstance(found, Duplicate)
        assert (found.base_offset, found.last_offset) == (sequence, sequence)
        assert found.timestamp == NOW + sequence
    with pytest.raises(errors.OutOfOrderSequenceNumber):
        log.append(1)


def test_only_an_equal_range_is_a_duplicate(log):
    log.append(0, 3)
    log.append(3, 3)
    for sequence, count in [(0, 2), (0, 6), (1, 2), (3, 2), (4, 2)]:
        with pytest.raises(errors.OutOfOrderSequenceNumber):
            log.append(sequence, count)


def test_a_duplicate_of_an_older_epoch_is_fenced(log):
    log.append(0, epoch=1)
    with pytest.raises(errors.InvalidProducerEpoch) as caught:
        log.append(0, epoch=0)
    assert caught.value.code == 47


@pytest.mark.parametrize("origin", [CLIENT, COORDINATOR])
def test_an_older_epoch_is_fenced(log, origin):
    log.append(0, epoch=3)
    with pytest.raises(errors.InvalidProducerEpoch):
        log.append(1, epoch=2, origin=origin)


def test_a_new_epoch_starts_at_zero_and_forgets_the_old_batches(log):
    log.append(0, 5)
    with pytest.raises(errors.OutOfOrderSequenceNumber) as caught:
        log.append(5, epoch=1)
    assert "1 (request epoch), 5 (seq. number), 0 (current producer epoch)" in str(caught.value)
    assert log.append(0, 5, epoch=1) == 5
    assert len(log.state.get(7).batches) == 1
    assert log.append(5, epoch=1) == 10


def test_epoch_minus_one_is_accepted_with_any_sequence(log):
    assert log.append(4, epoch=-1) == 0
    assert log.append(9, epoch=-1) == 1


def test_a_coordinators_batches_carry_no_sequences(log):
    assert log.append(-1, 2, origin=COORDINATOR) == 0
    assert log.append(-1, 2, origin=COORDINATOR) == 2
    assert log.state.get(7).last_sequence == -1
    assert log.append(0) == 4


def test_producers_do_not_disturb_each_other(log):
    log.append(0, producer_id=1)
    log.append(0, producer_id=2, epoch=5)
    assert log.append(1, producer_id=1) == 2
    assert {entry.producer_id for entry in log.state} == {1, 2}


def test_prepare_changes_nothing(log):
    log.append(0)
    before = repr(list(log.state))
    assert isinstance(
        log.state.prepare(batch(1, transactional=True), first_offset=1, origin=CLIENT),
        ProducerUpdate,
    )
    assert repr(list(log.state)) == before
    assert log.state.first_unstable_offset(0) is None


@pytest.mark.slow
@given(
    st.integers(0, SEQUENCE_MAX),
    st.lists(st.integers(1, 2**20), min_size=1, max_size=12),
)
def test_any_run_of_consecutive_batches_is_accepted_and_its_tail_recognised(first, counts):
    log = Partition()
    written = []
    sequence = first
    for count in counts:
        written.append((sequence, count, log.append(sequence, count)))
        sequence = (sequence + count) % 2**31
    for sequence, count, base_offset in written[-5:]:
        found = log.append(sequence, count)
        assert isinstance(found, Duplicate)
        assert found.base_offset == base_offset


# Verification of a transaction's first append


def test_an_append_may_not_overtake_the_lowest_sequence_seen(log):
    first, second = (
        log.state.begin_verification(7, 0, sequence, supports_epoch_bump=False)
        for sequence in (0, 1)
    )
    with pytest.raises(errors.OutOfOrderSequenceNumber) as caught:
        log.append(1, transactional=True, verification=second)
    assert "0 (earliest seen sequence)" in str(caught.value)
    assert log.append(0, transactional=True, verification=first) == 0
    # Both were verified while nothing was there: the second follows the first.
    assert log.append(1, transactional=True, verification=second) == 1


def test_an_append_forgets_the_awaited_sequences_of_all_epochs(log):
    log.state.begin_verification(7, 0, 3, supports_epoch_bump=False)
    assert log.append(0, epoch=1) == 0
    log.state.expire(NOW + log.state.expiration_ms)
    late = log.state.begin_verification(7, 0, 5, supports_epoch_bump=False)
    assert log.append(5, transactional=True, verification=late) == 1


def test_a_refused_batch_of_another_epoch_shuts_nobody_out(log):
    log.state.begin_verification(7, 1, 0, supports_epoch_bump=True)
    seen = log.state.begin_verification(7, 0, 3, supports_epoch_bump=False)
    assert log.append(3, transactional=True, verification=seen) == 0


def test_of_refused_batches_no_more_are_remembered_than_of_producers():
    log = Partition()
    state = log.state
    state.count_max = 4
    for producer_id in range(9):
        state.begin_verification(producer_id, 0, 0, supports_epoch_bump=False)
    late = state.begin_verification(0, 0, 1, supports_epoch_bump=False)
    assert log.append(1, producer_id=0, transactional=True, verification=late) == 0
    late = state.begin_verification(8, 0, 1, supports_epoch_bump=False)
    with pytest.raises(errors.OutOfOrderSequenceNumber):
        log.append(1, producer_id=8, transactional=True, verification=late)


def test_a_transactions_v2_producer_without_state_starts_at_zero(log):
    seen = VerificationState(supports_epoch_bump=True)
    with pytest.raises(errors.OutOfOrderSequenceNumber) as caught:
        log.append(5, verification=seen)
    assert "Expected sequence 0" in str(caught.value)
    assert log.append(5, verification=VerificationState(supports_epoch_bump=False)) == 0


def test_a_batch_that_follows_is_refused_if_a_marker_has_ended_its_transaction(log):
    log.append(0, transactional=True)
    log.mark(commit=True)
    seen = log.state.begin_verification(7, 0, 1, supports_epoch_bump=False)
    log.mark(commit=True)
    with pytest.raises(errors.InvalidTxnState):
        log.append(1, transactional=True, verification=seen)
    seen = log.state.begin_verification(7, 0, 1, supports_epoch_bump=False)
    log.append(1, transactional=True, verification=seen)


# Transactions


def test_an_open_transaction_before_an_ended_one_holds_the_stable_offset_back(log):
    log.append(0, producer_id=7, transactional=True)
    log.append(0, producer_id=8, transactional=True)
    log.mark(commit=True, producer_id=8)
    assert log.state.first_unstable_offset(0) == 0


def test_restored_transactions_hold_the_stable_offset_back_in_order(log):
    log.state.restore(
        [
            ProducerStateEntry(producer_id, last_timestamp=NOW, current_txn_first_offset=first)
            for producer_id, first in ((7, 20), (8, 10), (9, 30))
        ],
        NOW,
    )
    assert log.state.first_unstable_offset(0) == 10


def test_an_emptied_marker_fences_a_producer_that_is_known(log):
    log.append(0, epoch=1)
    marker = build_batch(
        [bytes(6)],
        timestamps=NOW,
        producer_id=7,
        producer_epoch=3,
        transactional=True,
        control=True,
    )
    log.state.replay(RecordBatch(empty_batch(RecordBatch(marker))))
    with pytest.raises(errors.InvalidProducerEpoch):
        log.append(1, epoch=1)


def test_kafka_forgets_the_earlier_batches_of_a_producer_first(log):
    log.append(0, timestamp=NOW + 500)
    log.append(1, timestamp=NOW)
    (entry,) = log.state
    rows = snapshot.encode([entry])[10:]
    stamps = [int.from_bytes(rows[at + 26 : at + 34], "big") for at in (0, 46)]
    assert stamps == [NOW, NOW]


def test_a_transaction_holds_the_stable_offset_back_until_its_marker_is_replicated(log):
    log.append(0)
    assert log.state.first_unstable_offset(log.end) is None
    log.append(1, transactional=True)
    log.append(2, transactional=True)
    assert log.state.has_open_transaction(7, 0)
    assert not log.state.has_open_transaction(7, 1)
    assert log.state.get(7).current_txn_first_offset == 1
    assert log.state.first_unstable_offset(3) == 1
    log.mark(commit=True)
    assert not log.state.has_open_transaction(7, 0)
    assert log.state.first_unstable_offset(3) == 1  # the marker, at 3, is not below it
    assert log.state.first_unstable_offset(4) is None
    assert log.aborted == []


def test_an_abort_is_told_to_the_index(log):
    log.append(0, 2, transactional=True)
    update = log.mark(commit=False)
    assert update.completed.is_aborted
    (found,) = log.aborted
    assert (found.producer_id, found.first_offset, found.last_offset) == (7, 0, 2)
    assert found.last_stable_offset == 3


def test_the_index_notes_the_oldest_other_transaction(log):
    log.append(0, producer_id=1, transactional=True)
    log.append(0, producer_id=2, transactional=True)
    log.append(0, producer_id=3, transactional=True)
    log.mark(commit=False, producer_id=2)
    log.mark(commit=False, producer_id=1)
    assert [found.last_stable_offset for found in log.aborted] == [0, 2]
    assert log.state.first_unstable_offset(log.end) == 2  # begun by producer 3


def test_the_stable_offset_waits_for_the_oldest_of_open_and_unreplicated(log):
    log.append(0, producer_id=1, transactional=True)  # 0
    log.append(0, producer_id=2, transactional=True)  # 1
    log.mark(commit=True, producer_id=1)  # 2
    assert log.state.first_unstable_offset(2) == 0
    assert log.state.first_unstable_offset(3) == 1
    log.mark(commit=True, producer_id=2)  # 3
    assert log.state.first_unstable_offset(3) == 1
    assert log.state.first_unstable_offset(4) is None


def test_transactions_that_end_out_of_order_hold_the_stable_offset_back_in_order(log):
    for producer_id in range(5):
        log.append(0, producer_id=producer_id, transactional=True)  # 0 to 4
    for producer_id in (3, 1, 4, 0, 2):
        log.mark(commit=True, producer_id=producer_id)  # 5 to 9
    assert [log.state.first_unstable_offset(at) for at in (5, 8, 9, 10)] == [0, 0, 2, None]


def test_a_marker_without_data_completes_nothing(log):
    update = log.mark(commit=False)
    assert update.completed is None
    assert log.aborted == []
    assert log.state.first_unstable_offset(0) is None
    entry = log.state.get(7)
    assert (entry.last_sequence, entry.coordinator_epoch, entry.producer_epoch) == (-1, 0, 0)


def test_a_marker_of_the_same_epoch_keeps_the_sequences(log):
    log.append(0, transactional=True)
    log.mark(commit=True)
    assert log.append(1, transactional=True) == 2
    assert isinstance(log.append(0, transactional=True), Duplicate)


def test_a_marker_of_a_later_epoch_starts_the_sequences_anew(log):
    log.append(0, transactional=True)
    log.mark(commit=True, epoch=1)
    with pytest.raises(errors.OutOfOrderSequenceNumber):
        log.append(1, epoch=1, transactional=True)
    assert log.append(0, epoch=1, transactional=True) == 2


def test_plain_batches_wait_for_the_end_of_the_transaction(log):
    log.append(0, transactional=True)
    with pytest.raises(errors.InvalidTxnState) as caught:
        log.append(1)
    assert caught.value.code == 48
    log.mark(commit=True)
    assert log.append(1) == 2


def test_an_old_marker_is_fenced(log):
    log.append(0, epoch=2, transactional=True)
    with pytest.raises(errors.InvalidProducerEpoch):
        log.mark(commit=True, epoch=1)


def test_a_marker_of_an_old_coordinator_is_fenced(log):
    log.append(0, transactional=True)
    log.mark(commit=True, coordinator=5)
    log.append(1, transactional=True)
    with pytest.raises(errors.TransactionCoordinatorFenced) as caught:
        log.mark(commit=True, coordinator=4)
    assert caught.value.code == 52
    log.mark(commit=True, coordinator=5)


def test_a_marker_of_transactions_v2_must_raise_the_epoch(log):
    log.append(0, transactional=True)
    with pytest.raises(errors.InvalidProducerEpoch):
        log.mark(commit=True, transaction_version=2)
    log.mark(commit=True, epoch=1, transaction_version=2)
    # The same marker again is a retry: its transaction has ended.
    assert log.mark(commit=True, epoch=1, transaction_version=2).completed is None


def test_ended_transactions_below_the_log_start_are_forgotten(log):
    log.append(0, transactional=True)
    log.mark(commit=True)
    log.state.forget_transactions_below(1)
    assert log.state.first_unstable_offset(0) == 0
    log.state.forget_transactions_below(2)
    assert log.state.first_unstable_offset(0) is None


# Replay


def real(base_offset: int, **kw) -> RecordBatch:
    return RecordBatch(
        build_batch([b"v"], timestamps=NOW, base_offset=base_offset, producer_id=7, **kw)
    )


def marker(base_offset: int, kind: int, *, epoch: int = 0) -> RecordBatch:
    return RecordBatch(
        build_batch(
            [b"\x00\x00\x00\x00\x00\x05"],
            keys=[b"\x00\x00" + kind.to_bytes(2, "big", signed=True)],
            timestamps=NOW,
            base_offset=base_offset,
            producer_id=7,
            producer_epoch=epoch,
            transactional=True,
            control=True,
        )
    )


def test_replay_takes_over_data_and_markers():
    state = ProducerStateManager(86_400_000)
    assert state.replay(real(10, producer_epoch=0, base_sequence=0, transactional=True)) is None
    assert state.first_unstable_offset(99) == 10
    found = state.replay(marker(11, 0))
    assert found is not None
    assert (found.first_offset, found.last_offset, found.last_stable_offset) == (10, 11, 12)
    state.replay(real(12, producer_epoch=0, base_sequence=1, transactional=True))
    assert state.replay(marker(13, 1)) is None
    entry = state.get(7)
    assert (entry.coordinator_epoch, entry.last_sequence, entry.last_data_offset) == (5, 1, 12)
    assert state.first_unstable_offset(14) is None


def test_replay_never_refuses():
    state = ProducerStateManager(86_400_000)
    state.replay(real(0, producer_epoch=3, base_sequence=0, transactional=True))
    state.replay(real(1, producer_epoch=3, base_sequence=9))
    state.replay(real(2, producer_epoch=1, base_sequence=4))
    state.replay(marker(3, 1, epoch=0))
    assert state.get(7).producer_epoch == 0


def test_replay_passes_over_other_batches():
    state = ProducerStateManager(86_400_000)
    state.replay(RecordBatch(build_batch([b"v"], timestamps=NOW)))
    state.replay(marker(5, 2))
    state.replay(marker(6, -1))
    assert len(state) == 0


# Expiry


def test_idle_producers_expire_unless_a_transaction_is_open():
    log = Partition(expiration_ms=100)
    log.append(0, producer_id=1, timestamp=NOW)
    log.append(0, producer_id=2, timestamp=NOW + 50)
    log.append(0, producer_id=3, timestamp=NOW, transactional=True)
    assert log.state.expire(NOW + 99) == []
    assert log.state.expire(NOW + 100) == [1]
    assert log.state.expire(NOW + 10_000) == [2]
    assert [entry.producer_id for entry in log.state] == [3]
    log.mark(commit=True, producer_id=3)
    assert log.state.expire(NOW + 10_000) == [3]


def test_truncate_forgets_everything(log):
    log.append(0, transactional=True)
    log.mark(commit=True)
    log.append(1, transactional=True)
    log.state.truncate()
    assert len(log.state) == 0
    assert log.state.first_unstable_offset(0) is None


# Snapshots


def test_a_snapshot_has_kafkas_bytes(log):
    log.end = 0x1234
    log.append(6, 3, producer_id=0x0102, epoch=2, timestamp=0x0506, transactional=True)
    content = snapshot.encode(log.state)
    assert content[:2].hex() == "0001"
    assert content[6:].hex() == (
        "00000001"
        "0000000000000102"
        "0002"
        "00000008"
        "0000000000001236"
        "00000002"
        "0000000000000506"
        "ffffffff"
        "0000000000001234"
    )


def test_a_snapshot_keeps_the_last_batch_and_the_open_transaction(log):
    log.append(0, 3, producer_id=1)
    log.append(3, 2, producer_id=1)
    log.append(0, producer_id=2, transactional=True)
    log.append(0, producer_id=4, transactional=True)
    log.mark(commit=True, producer_id=2, coordinator=9)
    restored = Partition()
    restored.end = log.end
    restored.state.restore(snapshot.decode(snapshot.encode(log.state)), NOW)
    assert restored.state.get(2).coordinator_epoch == 9
    assert restored.state.first_unstable_offset(99) == 6
    assert isinstance(restored.append(3, 2, producer_id=1), Duplicate)
    assert restored.append(5, producer_id=1) == log.end
    assert snapshot.encode(restored.state) != snapshot.encode(log.state)


def test_an_entry_without_batches_survives_a_snapshot(log):
    log.mark(commit=True, epoch=4)
    restored = ProducerStateManager(86_400_000)
    restored.restore(snapshot.decode(snapshot.encode(log.state)), NOW)
    entry = restored.get(7)
    assert (entry.producer_epoch, entry.last_sequence, entry.batches) == (4, -1, ())


def test_expired_producers_are_not_restored():
    log = Partition(expiration_ms=100)
    log.append(0, producer_id=1, timestamp=NOW)
    log.append(0, producer_id=2, timestamp=NOW, transactional=True)
    state = ProducerStateManager(100)
    state.restore(snapshot.decode(snapshot.encode(log.state)), NOW + 100)
    assert [entry.producer_id for entry in state] == [2]


# Too many producers


def few(count_max: int) -> Partition:
    log = Partition()
    log.state = ProducerStateManager(86_400_000, "t-0", count_max=count_max)
    return log


def test_those_who_have_not_written_for_longest_are_forgotten():
    log = few(20)
    for producer_id in range(20):
        log.append(0, producer_id=producer_id, timestamp=NOW - producer_id)
    log.append(1, producer_id=0)
    assert len(log.state) == 20
    log.append(0, producer_id=20)
    kept = sorted(entry.producer_id for entry in log.state)
    assert kept == [0, *range(4, 21)], "a tenth more than one too many, and not the one in use"


def test_who_was_forgotten_goes_on_and_is_judged_again():
    log = few(1)
    log.append(0, 3, producer_id=1)
    log.append(0, producer_id=2)
    assert log.state.get(1) is None
    assert log.append(3, producer_id=1) == 4
    with pytest.raises(errors.OutOfOrderSequenceNumber):
        log.append(9, producer_id=1)


def test_open_transactions_and_fences_are_kept_whatever_their_number():
    log = few(2)
    for producer_id in range(5):
        log.append(0, producer_id=producer_id, transactional=True)
    log.mark(commit=True, producer_id=4, epoch=1)
    log.append(0, producer_id=5)
    assert sorted(entry.producer_id for entry in log.state) == [0, 1, 2, 3, 4, 5]
    log.append(0, producer_id=6)
    assert sorted(entry.producer_id for entry in log.state) == [0, 1, 2, 3, 4, 6]
    assert log.state.first_unstable_offset(log.end) == 0


def test_a_snapshot_of_more_producers_than_are_allowed_is_cut_as_well():
    log = few(30)
    for producer_id in range(30):
        log.append(0, producer_id=producer_id)
    state = ProducerStateManager(86_400_000, count_max=20)
    state.restore(snapshot.decode(snapshot.encode(log.state)), NOW)
    assert sorted(entry.producer_id for entry in state) == list(range(12, 30))


def test_every_flipped_bit_of_a_snapshot_is_noticed(log):
    log.append(0, producer_id=1)
    content = snapshot.encode(log.state)
    state = ProducerStateManager(86_400_000)
    state.restore(snapshot.decode(content), NOW)
    before = repr(list(state))
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            with pytest.raises(errors.CorruptRecord):
                state.restore(snapshot.decode(damaged, "00000000000000000001.snapshot"), NOW)
    for size in range(len(content)):
        with pytest.raises(errors.CorruptRecord):
            state.restore(snapshot.decode(content[:size]), NOW)
    assert repr(list(state)) == before
