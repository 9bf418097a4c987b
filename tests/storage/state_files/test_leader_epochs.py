"""Leader epochs: assignment, the KIP-101 question, truncation, Kafka's checkpoint text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.errors import CorruptRecord
from embedlog.storage.state_files.leader_epochs import LeaderEpochs
from tests.crash.opcodes import Countdown


def three() -> LeaderEpochs:
    return LeaderEpochs([(2, 10), (4, 30), (7, 50)])


def test_an_epoch_is_assigned_once():
    epochs = LeaderEpochs()
    assert epochs.latest_epoch == -1
    assert epochs.assign(0, 0)
    assert not epochs.assign(0, 0)
    assert not epochs.assign(0, 25)
    assert epochs.entries == [(0, 0)]


def test_a_later_epoch_is_appended():
    epochs = three()
    assert epochs.assign(8, 60)
    assert epochs.entries == [(2, 10), (4, 30), (7, 50), (8, 60)]


@pytest.mark.parametrize(
    ("epoch", "start", "left"),
    [
        (7, 40, [(2, 10), (4, 30), (7, 40)]),  # same epoch, earlier start
        (8, 50, [(2, 10), (4, 30), (8, 50)]),  # the last epoch wrote nothing
        (8, 20, [(2, 10), (8, 20)]),
        (3, 60, [(2, 10), (3, 60)]),
        (0, 0, [(0, 0)]),
    ],
)
def test_an_assignment_drops_the_entries_it_contradicts(epoch, start, left):
    epochs = three()
    assert epochs.assign(epoch, start)
    assert epochs.entries == left


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (-1, (-1, -1)),
        (-2, (-2, 10)),
        (0, (0, 10)),
        (2, (2, 30)),
        (3, (2, 30)),
        (4, (4, 50)),
        (6, (4, 50)),
        (7, (7, 99)),
        (8, (-1, -1)),
    ],
)
def test_end_offset_for_an_epoch(requested, answer):
    assert three().end_offset_for(requested, 99) == answer


@pytest.mark.parametrize("requested", [-2, -1, 0, 5])
def test_an_empty_cache_knows_no_end_offset(requested):
    assert LeaderEpochs().end_offset_for(requested, 99) == (-1, -1)


def test_an_empty_log_of_epoch_0_answers_epoch_minus_2_with_offset_0():
    assert LeaderEpochs([(0, 0)]).end_offset_for(-2, 0) == (-2, 0)


@pytest.mark.parametrize(
    ("offset", "epoch"), [(0, -1), (9, -1), (10, 2), (29, 2), (30, 4), (50, 7), (10**9, 7)]
)
def test_epoch_for_offset(offset, epoch):
    assert three().epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(
    ("offset", "changed", "left"),
    [
        (51, False, [(2, 10), (4, 30), (7, 50)]),
        (50, True, [(2, 10), (4, 30)]),
        (31, True, [(2, 10), (4, 30)]),
        (30, True, [(2, 10)]),
        (0, True, []),
    ],
)
def test_truncate_from_end(offset, changed, left):
    epochs = three()
    assert epochs.truncate_from_end(offset) is changed
    assert epochs.entries == left


@pytest.mark.parametrize(
    ("offset", "changed", "left"),
    [
        (5, False, [(2, 10), (4, 30), (7, 50)]),
        (10, False, [(2, 10), (4, 30), (7, 50)]),
        (11, True, [(2, 11), (4, 30), (7, 50)]),
        (30, True, [(4, 30), (7, 50)]),
        (45, True, [(4, 45), (7, 50)]),
        (80, True, [(7, 80)]),
    ],
)
def test_truncate_from_start_keeps_the_epoch_in_force(offset, changed, left):
    epochs = three()
    assert epochs.truncate_from_start(offset) is changed
    assert epochs.entries == left


def test_the_checkpoint_is_kafkas_text():
    assert three().encode() == b"0\n3\n2 10\n4 30\n7 50\n"
    assert LeaderEpochs.decode(b"0\n3\n2 10\n4  30\n7\t50\n").entries == three().entries


def test_an_empty_checkpoint_holds_nothing():
    assert LeaderEpochs.decode(b"").entries == []
    assert LeaderEpochs.decode(LeaderEpochs().encode()).entries == []


@pytest.mark.parametrize(
    ("content", "position"),
    [
        (b"1\n0\n", 0),
        (b"0\n", 2),
        (b"0\nx\n", 2),
        (b"0\n2\n1 1\n", 0),
        (b"0\n1\n1 1 1\n", 4),
        (b"0\n2\n1 1\n2 -5\n", 8),
        (b"0\n2\n1 1\n1 2\n", 8),
        (b"0\n2\n1 5\n2 5\n", 8),
    ],
)
def test_a_damaged_checkpoint_is_a_typed_error(content, position):
    with pytest.raises(CorruptRecord) as caught:
        LeaderEpochs.decode(content, "data/leader-epoch-checkpoint")
    assert caught.value.path == "data/leader-epoch-checkpoint"
    assert caught.value.position == position


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 300)), max_size=30))
def test_any_assignments_leave_both_columns_increasing_and_survive_the_file(assignments):
    epochs = LeaderEpochs()
    for epoch, start in assignments:
        epochs.assign(epoch, start)
        assert epochs.latest_epoch == epoch
        assert epochs.epoch_for_offset(start) == epoch
    columns = list(zip(*epochs.entries, strict=True))
    assert all(list(column) == sorted(set(column)) for column in columns)
    assert LeaderEpochs.decode(epochs.encode()).entries == epochs.entries


@pytest.mark.parametrize(
    "change",
    [
        lambda epochs: epochs.assign(8, 20),
        lambda epochs: epochs.truncate_from_end(30),
        lambda epochs: epochs.truncate_from_start(35),
        lambda epochs: epochs.clear(),
    ],
)
def test_a_reader_of_another_thread_sees_the_epochs_before_a_change_or_after_it(change):
    def answers(epochs):
        return [epochs.end_offset_for(epoch, 99) for epoch in range(9)] + epochs.entries

    changed = three()
    change(changed)
    allowed = [answers(three()), answers(changed)]
    seen, left = [], 0
    while not seen or seen[-1] is not None:
        left += 1
        epochs = three()
        seen.append(None)

        def look(epochs=epochs):
            seen[-1] = answers(epochs)

        countdown = Countdown(left, look, ("/state_files/leader_epochs",))
        countdown.start()
        try:
            change(epochs)
        finally:
            countdown.stop()
    assert all(each in allowed for each in seen[:-1])
    assert [answers(three())] == seen[:1]
