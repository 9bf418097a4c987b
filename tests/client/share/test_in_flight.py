"""Records in flight, their acknowledgements, and commits that wait for them."""

from __future__ import annotations

from embedlog import ShareRecord, TopicPartition, errors
from embedlog.client.share.acknowledgements import Acknowledgements, Outcomes, ShareCommit
from embedlog.client.share.in_flight import Delivery, InFlight
from embedlog.client.share.leader import Leader
from embedlog.client.share.parts import TOTALS
from embedlog.client.share.session import ShareSession

HERE = TopicPartition("jobs", 0)
ID = b"i" * 16
ACCEPT, RELEASE, RENEW = 1, 2, 4


def record(offset: int) -> ShareRecord:
    return ShareRecord(("jobs", 0, 0, 0, offset, 1, None, b"v", (), 1))  # type: ignore[arg-type]


def delivered(*offsets: int, node_id: int = 1) -> tuple[InFlight, Delivery]:
    in_flight = InFlight()
    delivery = in_flight.delivery(HERE, ID, node_id)
    delivery.add([record(offset) for offset in offsets])
    return in_flight, delivery


def test_only_delivered_records_are_acknowledged_and_the_last_type_wins() -> None:
    in_flight, delivery = delivered(1, 2)
    assert not in_flight.acknowledge(HERE, 3, ACCEPT)
    assert not in_flight.acknowledge(("jobs", 1), 1, ACCEPT)
    assert in_flight.acknowledge(HERE, 1, RELEASE)
    assert in_flight.acknowledge(HERE, 1, ACCEPT)
    assert in_flight.open_count == 1
    assert in_flight.take(accepts=False) == [(delivery, {1: ACCEPT})]
    assert not in_flight.acknowledge(HERE, 1, ACCEPT)
    assert in_flight.take(accepts=True) == [(delivery, {2: ACCEPT})]
    assert in_flight.take(accepts=True) == []


def test_a_renewed_record_is_returned_again_and_can_be_accepted_before() -> None:
    in_flight, delivery = delivered(1, 2)
    for offset in (1, 2):
        in_flight.acknowledge(HERE, offset, RENEW)
    in_flight.take(accepts=False)
    assert in_flight.is_renewing
    assert in_flight.open_count == 0
    delivery.settle([1, 2], renewed=True)
    assert not in_flight.is_renewing
    assert in_flight.acknowledge(HERE, 1, ACCEPT)
    assert in_flight.has_again
    assert in_flight.take_again() == {HERE: [record(2)]}
    assert not in_flight.has_again
    assert in_flight.open_count == 1


def test_records_of_a_cancelled_poll_are_returned_again() -> None:
    in_flight, delivery = delivered()
    first, second = record(1), record(2)
    delivery.add([first, second])
    in_flight.give_back([second])
    assert in_flight.take(accepts=True) == [(delivery, {1: ACCEPT})]
    assert in_flight.take_again() == {HERE: [second]}


def test_a_partition_of_two_leaders_has_two_deliveries() -> None:
    in_flight, old = delivered(1)
    new = in_flight.delivery(HERE, ID, 2)
    new.add([record(5)])
    assert in_flight.delivery(HERE, ID, 1) is old
    assert in_flight.acknowledge(HERE, 5, RELEASE)
    assert in_flight.take(accepts=True) == [(old, {1: ACCEPT}), (new, {5: RELEASE})]


def test_an_offset_is_in_a_request_once() -> None:
    _, delivery = delivered()
    leader = Leader(1, ShareSession("workers", "me"))
    first, second, third = (
        Acknowledgements(delivery, types, 0) for types in ({1: RENEW}, {1: ACCEPT}, {2: ACCEPT})
    )
    leader.waiting += [first, second, third]
    chosen, types = leader.take_waiting()
    assert chosen == [first, third]
    assert types == {(ID, 0): {1: RENEW, 2: ACCEPT}}
    assert leader.waiting == [second]


def test_a_commit_keeps_the_error_of_a_partition() -> None:
    _, old = delivered()
    new = Delivery(HERE, ID, 2)
    outcomes = Outcomes(dict.fromkeys(TOTALS, 0))
    commit = ShareCommit()
    both = [Acknowledgements(each, {1: ACCEPT}, 0) for each in (old, new)]
    for one in both:
        one.commit = commit
        commit.wait_for(one)
    error = errors.NotLeaderOrFollower()
    outcomes.finish(both[0], error)
    assert not commit.is_done
    outcomes.finish(both[1], None)
    assert commit.is_done
    assert commit.results == {HERE: error}


def test_a_commit_that_is_given_up_hears_nothing_more() -> None:
    _, delivery = delivered()
    outcomes = Outcomes(dict.fromkeys(TOTALS, 0))
    commit = ShareCommit()
    one = Acknowledgements(delivery, {1: ACCEPT}, 0)
    one.commit = commit
    commit.wait_for(one)
    commit.give_up()
    outcomes.finish(one, None)
    assert type(commit.results[HERE]) is errors.RequestTimedOut
