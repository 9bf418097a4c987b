"""Random histories of one share partition: members, locks, failing writes, reloads, log starts.

Never two owners of a record, none lost, counts never fall, at most as many deliveries as allowed.
Terminal states stay, and the start only moves forward. If keys have an order, no record comes
before an earlier one of its key is over.
"""

from __future__ import annotations

from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from embedlog import errors
from embedlog.sharing.acknowledgement import Acknowledgement
from embedlog.sharing.acquisition import BATCH_OPTIMIZED, RECORD_LIMIT
from embedlog.sharing.delivery import Cause
from tests.sharing.world import GROUP, LOCK_MS, World

LIMIT = 3
MEMBERS = st.sampled_from(["one", "two", "three"])
FINAL = (Cause.ACCEPT, Cause.REJECT, Cause.GAP)


class Deliveries(RuleBasedStateMachine):
    """A share partition, and what every offset has gone through."""

    group_settings: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.world = World(share_delivery_count_limit=str(LIMIT), **self.group_settings)
        self.keys = ""
        """The key of each record; "-" for none."""
        self.log_start = 0
        self.start_seen = 0
        self.owners: dict[int, tuple[str, int]] = {}
        """Offset -> (member, time of its lock's end)."""
        self.moving: set[int] = set()
        self.counts: dict[int, int] = {}
        self.over: set[int] = set()

    @property
    def now_ms(self) -> int:
        return self.world.runtime.clock.monotonic_ms()

    @property
    def end(self) -> int:
        return len(self.keys)

    @rule(batches=st.lists(st.text("ab-", min_size=1, max_size=12), min_size=1, max_size=3))
    def produce(self, batches: list[str]) -> None:
        self.world.fill(*batches)
        self.keys += "".join(batches)

    @rule(
        member=MEMBERS,
        count=st.integers(1, 20),
        batch_size=st.integers(1, 20),
        mode=st.sampled_from([BATCH_OPTIMIZED, RECORD_LIMIT]),
        locks=st.sampled_from([5, 20, 1000]),
    )
    def acquire(self, member: str, count: int, batch_size: int, mode: int, locks: int) -> None:
        acquired = self.world.acquire(
            member, record_count_max=count, batch_size=batch_size, mode=mode, lock_count_max=locks
        )
        total = 0
        for first, last, delivery_count in acquired:
            assert first <= last, acquired
            assert 1 <= delivery_count <= LIMIT, acquired
            for offset in range(first, last + 1):
                assert self.log_start <= offset < self.end, acquired
                assert offset not in self.owners, (offset, self.owners)
                assert offset not in self.over, offset
                assert delivery_count > self.counts.get(offset, 0), offset
                self.check_order(offset)
                self.owners[offset] = (member, self.now_ms + LOCK_MS)
                self.counts[offset] = delivery_count
                total += 1
        if mode == RECORD_LIMIT:
            assert total <= count

    def check_order(self, offset: int) -> None:
        """Check that the record at the offset may be delivered now."""

    @rule(
        member=MEMBERS,
        at=st.integers(0, 60),
        causes=st.lists(st.integers(0, 4), min_size=1, max_size=8),
        is_uniform=st.booleans(),
        is_likely=st.booleans(),
    )
    def acknowledge(
        self, member: str, at: int, causes: list[int], is_uniform: bool, is_likely: bool
    ) -> None:
        mine = sorted(o for o, (owner, _) in self.owners.items() if owner == member)
        if mine and is_likely:
            at = mine[at % len(mine)]
        last = at + len(causes) - 1
        causes = causes[:1] if is_uniform else causes
        start = self.world.share.window.start_offset
        offsets = [offset for offset in range(at, last + 1) if offset >= start]
        told = Acknowledgement(at, last, tuple(causes))
        may = all(
            self.owners.get(offset, ("", 0))[0] == member and offset not in self.moving
            for offset in offsets
        )
        try:
            pending = self.world.share.acknowledge(member, [told])
        except errors.KafkaError:
            assert not may, (told, self.owners)
            return
        assert may, (told, self.owners)
        moved = [offset for offset in offsets if told.cause_at(offset) != Cause.RENEW]
        for offset in offsets:
            if offset not in moved:
                self.owners[offset] = (member, self.now_ms + LOCK_MS)
        self._follow(pending, {offset: told.cause_at(offset) for offset in moved})

    @rule(member=MEMBERS)
    def end_session(self, member: str) -> None:
        mine = [o for o, (owner, _) in self.owners.items() if owner == member]
        pending = self.world.share.release(member)
        self._follow(pending, {o: Cause.RELEASE for o in mine if o not in self.moving})

    def _follow(self, pending: Any, causes: dict[int, int]) -> None:
        self.moving |= causes.keys()
        owners = self.owners

        def done(answer: Any) -> None:
            if owners is not self.owners:
                return  # another loading has forgotten these moves
            self.moving -= causes.keys()
            for offset, cause in causes.items():
                if offset not in self.owners:
                    continue
                if answer.error() is not None:
                    if self.owners[offset][1] <= self.now_ms:
                        self._back(offset)
                elif cause in FINAL:
                    del self.owners[offset]
                    self.over.add(offset)
                else:
                    self._back(offset)

        pending.add_callback(done)

    def _back(self, offset: int) -> None:
        del self.owners[offset]
        if self.counts[offset] >= LIMIT:
            self.over.add(offset)

    @rule(delay_ms=st.sampled_from([1_000, 10_000, LOCK_MS]))
    def wait(self, delay_ms: int) -> None:
        self.world.run_for(delay_ms)
        for offset, (_, end_ms) in list(self.owners.items()):
            if end_ms <= self.now_ms and offset not in self.moving:
                self._back(offset)

    @rule()
    def state_is_slow(self) -> None:
        self.world.state.is_slow = True

    @rule()
    def state_goes_on(self) -> None:
        self.world.state.is_slow = False
        while self.world.state.waiting_count:
            self.world.state.go_on()

    @rule()
    def next_write_fails(self) -> None:
        self.world.state.failures = [errors.CoordinatorNotAvailable()]

    @precondition(lambda self: not self.world.state.is_slow)
    @rule()
    def load_again(self) -> None:
        self.world.state.failures.clear()
        self.world.share.fence()
        self.world.load()
        self.owners, self.moving = {}, set()
        state = self.world.state.states[GROUP, self.world.place]
        stored = state.offsets
        self.counts = {offset: count for offset, (count, _) in stored.items()}
        self.over = {offset for offset, (_, kind) in stored.items() if kind in (2, 4)}
        self.over.update(range(state.start_offset))
        self.start_seen = 0

    @rule(step=st.integers(1, 10))
    def delete_records(self, step: int) -> None:
        self.log_start = min(self.log_start + step, self.end)
        self.world.partition.delete_records(self.log_start)
        # The window notices it at the next read.
        self.world.acquire("nobody", record_count_max=0)
        for offset in [offset for offset in self.owners if offset < self.log_start]:
            del self.owners[offset]
            self.moving.discard(offset)

    @invariant()
    def the_window_is_sound(self) -> None:
        window = self.world.share.window
        assert window.start_offset >= self.start_seen
        self.start_seen = window.start_offset
        before = window.start_offset - 1
        for batch in window.batches:
            assert batch.runs
            for run in batch.runs:
                assert batch.first <= run.first <= run.last <= batch.last
                assert run.first > before
                before = run.last
                assert (run.owner != "") == (run.state == 1), run
        assert window.in_flight_count >= 0

    def teardown(self) -> None:
        """Every record can still be had, unless it is over."""
        self.state_goes_on()
        self.world.state.failures.clear()
        self.world.run_for(LOCK_MS)
        for offset in list(self.owners):
            self._back(offset)
        for _ in range(2000):
            acquired = self.world.acquire("last")
            for first, last, _ in acquired:
                assert self.over.isdisjoint(range(first, last + 1)), (acquired, self.over)
                self.over.update(range(first, last + 1))
                assert self.world.say("last", first, last, Cause.ACCEPT) is None
            if not acquired:
                break
        assert self.over.issuperset(range(self.log_start, self.end))
        assert self.world.share.window.start_offset == self.end
        self.world.close()


TestDeliveries = Deliveries.TestCase
TestDeliveries.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


class OrderedDeliveries(Deliveries):
    """A share partition whose keys have an order."""

    group_settings: ClassVar[dict[str, str]] = {"embedlog_share_key_order": "true"}

    def check_order(self, offset: int) -> None:
        """Check that the earlier records of the key are over."""
        key = self.keys[offset]
        for earlier in range(self.log_start, offset):
            assert key == "-" or self.keys[earlier] != key or earlier in self.over, (
                earlier,
                offset,
            )


TestOrderedDeliveries = OrderedDeliveries.TestCase
TestOrderedDeliveries.settings = TestDeliveries.settings
