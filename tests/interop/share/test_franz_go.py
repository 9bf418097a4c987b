"""franz-go's share group: accept, release, reject, renew, the record limit, and close."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType

import pytest

from tests.interop.share.share_group import ShareGroup
from tests.interop.share.worker import Asked
from tests.support.tools import need_franz_go

pytestmark = [pytest.mark.interop, pytest.mark.slow]
NewGroup = Callable[..., ShareGroup]
Delivered = tuple[int, int]


class FranzMember:
    """A member with franz-go that obeys orders."""

    def __init__(self, group: ShareGroup, *, records_max: int = 500, strict: bool = False) -> None:
        asked = Asked(
            group.address, group.topic, group.name,
            obeys=True, records_max=records_max, is_strict=strict,
        )  # fmt: skip
        self._process = subprocess.Popen(
            [need_franz_go("share"), json.dumps(asdict(asked))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _order(self, order: str, last: str) -> list[list[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        found = []
        for line in self._process.stdout:
            if line == last + "\n":
                return found
            found.append(line.split())
        raise AssertionError(found)

    def poll(self, seconds: float = 30, count: int = 500) -> list[Delivered]:
        """Return the offsets and delivery counts of one poll."""
        lines = self._order(f"poll {count} {seconds}", "polled")
        assert "error" not in [line[0] for line in lines], lines
        return [(int(line[3]), int(line[4])) for line in lines if line[0] == "got"]

    def ack(self, kind: str, *offsets: int) -> None:
        """Acknowledge records of the last poll, by default all, and wait for the broker."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(["ack", kind, *map(str, offsets)]) + "\n")
        lines = self._order("flush", "flushed")
        assert {line[0] for line in lines} == {"try", "did"}, lines

    def __enter__(self) -> FranzMember:
        return self

    def __exit__(self, kind: type | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            self._order("close", "closed")
        else:
            self._process.kill()
        self._process.communicate(timeout=30)


def test_records_are_accepted_released_and_rejected(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(6))
    with FranzMember(group) as member:
        assert member.poll() == [(offset, 1) for offset in range(6)]
        member.ack("accept", 0, 1, 4)
        member.ack("reject", 5)
        member.ack("release", 2, 3)
        assert member.poll() == [(2, 2), (3, 2)]
        member.ack("accept")
        assert group.lag() == 0


def test_the_next_poll_accepts_unmarked_records(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(3))
    with FranzMember(group) as member:
        assert len(member.poll()) == 3
        assert member.poll(0.5) == []
        group.wait_for_lag(0)


def test_a_renewed_record_stays_with_its_member(new_group: NewGroup) -> None:
    group = new_group()
    group.configure({"share.record.lock.duration.ms": "1500"})
    group.produce(range(2))
    with FranzMember(group) as holder:
        assert holder.poll() == [(0, 1), (1, 1)]
        holder.ack("accept", 0)
        for _ in range(3):
            time.sleep(0.9)
            holder.ack("renew", 1)
        with FranzMember(group) as other:
            assert other.poll(0.5) == []
            holder.ack("accept", 1)
            assert group.lag() == 0
            assert other.poll(0.5) == []


def test_a_strict_limit_splits_a_batch(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(10))
    with FranzMember(group, records_max=3, strict=True) as member:
        sizes = []
        while sum(sizes) < 10:
            sizes.append(len(member.poll()))
            member.ack("accept")
        assert sizes == [3, 3, 3, 1]
        assert group.lag() == 0


def test_close_releases_records_that_were_not_polled(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(5))
    with FranzMember(group) as member:
        assert member.poll(count=2) == [(0, 1), (1, 1)]
        member.ack("accept")
    with FranzMember(group) as other:
        assert other.poll() == [(2, 2), (3, 2), (4, 2)]
        other.ack("accept")
        assert group.lag() == 0
