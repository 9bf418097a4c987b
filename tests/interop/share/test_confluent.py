"""confluent-kafka's ShareConsumer: both modes, all acknowledgements, counts, locks and close."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.share.confluent_member import ConfluentMember
from tests.interop.share.share_group import ShareGroup

pytestmark = [pytest.mark.interop, pytest.mark.slow]
NewGroup = Callable[..., ShareGroup]
SECONDS_FOR_NOTHING = 0.7


def firsts(count: int, deliveries: int = 1) -> list[tuple[int, int]]:
    return [(offset, deliveries) for offset in range(count)]


def test_a_commit_accepts_everything_in_implicit_mode(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(10))
    with ConfluentMember(group, "implicit") as member:
        assert member.poll() == firsts(10)
        member.commit()
        assert group.lag() == 0


def test_the_next_poll_accepts_everything_in_implicit_mode(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(10))
    with ConfluentMember(group, "implicit") as member:
        assert member.poll() == firsts(10)
        assert group.lag() == -1
        assert member.poll(1) == []
        group.wait_for_lag(0)


def test_released_records_come_again_with_a_higher_count(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(6))
    with ConfluentMember(group) as member:
        assert member.poll() == firsts(6)
        member.ack("accept", 0, 1, 4)
        member.ack("release", 2, 3)
        member.ack("reject", 5)
        member.commit()
        assert group.lag() == 2
        assert member.poll() == [(2, 2), (3, 2)]
        member.ack("accept", 3)
        member.ack("release", 2)
        member.commit()
        assert member.poll() == [(2, 3)]
        member.ack("accept")
        member.commit()
        assert member.poll(0.7) == []
    assert group.lag() == 0


def test_a_record_released_too_often_is_given_up(new_group: NewGroup) -> None:
    group = new_group()
    group.configure({"share.delivery.count.limit": "3"})
    group.produce(["poison", "good"])
    with ConfluentMember(group) as member:
        seen = []
        while found := member.poll(SECONDS_FOR_NOTHING if len(seen) > 3 else 30):
            seen += found
            member.ack("release", 0)
            member.ack("accept", 1)
            member.commit()
        assert seen == [(0, 1), (1, 1), (0, 2), (0, 3)]
    assert group.lag() == 0


def test_close_releases_records_without_acknowledgement(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(5))
    with ConfluentMember(group) as member:
        assert member.poll() == firsts(5)
        member.ack("accept", 1)
    with ConfluentMember(group) as other:
        assert other.poll() == [(0, 2), (2, 2), (3, 2), (4, 2)]
        other.ack("accept")
        other.commit()
    assert group.lag() == 0


def test_a_lock_ends_and_another_member_gets_the_records(new_group: NewGroup) -> None:
    group = new_group()
    group.configure({"share.record.lock.duration.ms": "1500"})
    group.produce(range(3))
    with ConfluentMember(group) as slow, ConfluentMember(group) as other:
        assert slow.poll() == firsts(3)
        assert other.poll(0.5) == []
        assert other.poll() == firsts(3, 2)
        other.ack("accept", 1, 2)
        other.commit()
        slow.ack("accept", 1, 2)
        (error,) = slow.consumer.commit_sync(30).values()
        assert error is not None
        assert error.args[0].name() == "INVALID_RECORD_STATE"


def test_two_members_share_one_partition(new_group: NewGroup) -> None:
    group = new_group()
    for start in range(0, 40, 10):
        group.produce(range(start, start + 10))
    with (
        ConfluentMember(group, max_poll_records=10) as first,
        ConfluentMember(group, max_poll_records=10) as second,
    ):
        taken = [*first.poll(), *second.poll()]
        assert len(dict(taken)) == len(taken) >= 20
        first.ack("accept")
        second.ack("accept")
        first.commit()
        second.commit()
