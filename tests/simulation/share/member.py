"""Members of the share group: careless clients over raw requests, and a careful one."""

from __future__ import annotations

from typing import Any

from tests.golden.sharing_requests import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    acknowledge_request,
    fetch_request,
)
from tests.simulation.actor import Actor, Steps
from tests.simulation.cluster.client import Client, Place
from tests.simulation.cluster.world import NODES
from tests.simulation.share.world import GROUP, LOCK_MS, PLACES, TOPIC, ShareWorld, Wire, Wired
from tests.simulation.world import Ask, Life, Sleep
from wire.records import iter_batches
from wire.records.batch import RecordBatch
from wire.records.decode.choose import tuples
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

VERSION = 2
Range = tuple[int, int]
Batch = tuple[int, int, list[int]]


class Session:
    """A member's session with one broker."""

    def __init__(self, *, has_connection: bool) -> None:
        self.epoch = 0
        self.wire = Wire() if has_connection else None

    def next_epoch(self) -> int:
        """Take the epoch for the next request."""
        self.epoch += 1
        return self.epoch - 1


class Member(Actor):
    """Fetches, and acknowledges in all the ways that a client may and may not."""

    def __init__(
        self, client: Client, world: ShareWorld, name: str, topic_id: bytes, *, wired: bool
    ) -> None:
        self._client = client
        self._world = world
        self._topic = (TOPIC, topic_id)
        self._wired = wired
        self._sessions: dict[int, Session] = {}
        self._member_epoch = 0
        self._holds: list[tuple[Place, int, Range]] = []
        """Place, broker, and offsets that it got and has not acknowledged."""
        self._data: dict[Place, set[int]] = {place: set() for place in PLACES}
        self._told: list[tuple[Place, int, Range]] = []
        super().__init__(client, name)

    # Requests

    def _ask(self, node_id: int, request: Any) -> Any:
        session = self._session(node_id)
        what = Ask(request, VERSION)
        if session.wire is not None:
            what = Wired(request, VERSION, session.wire)
        return lambda done: self._client.send(node_id, what, done)

    def _session(self, node_id: int) -> Session:
        if node_id not in self._sessions:
            self._sessions[node_id] = Session(has_connection=self._wired)
        return self._sessions[node_id]

    def _leader(self, place: Place) -> Steps:
        """Return the leader of a partition."""
        if place not in self._client.leaders:
            yield lambda done: self._client.look_up(("leader", place), lambda: done(None))
        return self._client.leaders[place][0]

    def beat(self, epoch: int | None = None) -> Steps:
        """Send a heartbeat; join again if the group does not know the member."""
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.name,
            member_epoch=self._member_epoch if epoch is None else epoch,
            subscribed_topic_names=[TOPIC] if self._member_epoch == 0 else None,
        )
        answer = yield Ask(request, 1)
        if answer is None or answer.error_code in (14, 15, 16):
            return
        self._member_epoch = 0 if answer.error_code else max(0, answer.member_epoch)

    def fetch(
        self, place: Place, acknowledged: dict[Place, list[Batch]] | None = None, **how: Any
    ) -> Steps:
        """Fetch one partition from its leader; return whether it got anything."""
        node_id = yield from self._leader(place)
        session = self._session(node_id)
        if session.epoch == 0:
            acknowledged = None
        fields: dict[str, Any] = {"max_wait_ms": 0, **how}
        request = fetch_request(
            GROUP,
            self.name,
            session.next_epoch(),
            (self._topic, place[1]),
            acknowledged={
                (self._topic, each[1]): rows for each, rows in (acknowledged or {}).items()
            },
            **fields,
        )
        answer = yield self._ask(node_id, request)
        if answer is None or answer.error_code:
            self._drop(node_id, place)
            return False
        return self._take(node_id, answer)

    def look_up_again(self, place: Place) -> None:
        """Look the leader of a partition up before the next request."""
        self._client.forget(("leader", place))

    def _drop(self, node_id: int, place: Place) -> None:
        self._hang_up(node_id)
        self._client.forget(("leader", place))

    def _hang_up(self, node_id: int) -> None:
        session = self._sessions.pop(node_id, None)
        if session is not None and session.wire is not None:
            self._world.hang_up(node_id, session.wire, self.name)

    def _take(self, node_id: int, answer: Any) -> bool:
        is_any = False
        for topic in answer.responses:
            for row in topic.partitions:
                place = TOPIC, row.partition_index
                if row.error_code:
                    self._client.forget(("leader", place))
                self._data[place] |= _offsets(bytes(row.records or b""))
                for got in row.acquired_records:
                    is_any = True
                    self._holds.append((place, node_id, (got.first_offset, got.last_offset)))
        return is_any

    def acknowledge(
        self, node_id: int, batches: dict[Place, list[Batch]], *, closes: bool = False
    ) -> Steps:
        """Send a ShareAcknowledge; return its answer."""
        session = self._session(node_id)
        if session.epoch == 0 and not closes:
            return None
        is_renewal = any(RENEW in types for rows in batches.values() for _, _, types in rows)
        request = acknowledge_request(
            GROUP,
            self.name,
            -1 if closes else session.next_epoch(),
            {(self._topic, place[1]): rows for place, rows in batches.items()},
            is_renew_ack=is_renewal,
        )
        answer = yield self._ask(node_id, request)
        if closes or answer is None or answer.error_code:
            self._hang_up(node_id)
        return answer

    # A careless life

    def life(self) -> Life:
        """Fetch and acknowledge until the world ends it."""
        random = self.world.random
        while True:
            if self._member_epoch == 0 or random.random() < 0.2:
                yield from self.beat()
            place = random.choice(PLACES)
            how = {
                "max_wait_ms": random.choice((0, 0, 300)),
                "max_records": random.choice((1, 3, 10, 500)),
                "batch_size": random.choice((1, 4, 500)),
                "share_acquire_mode": random.choice((0, 0, 1)),
            }
            carried = {}
            if random.random() < 0.3:
                node_id = yield from self._leader(place)
                carried = self._words(node_id)
            yield from self.fetch(place, carried, **how)
            yield Sleep(self._pause())
            for node_id in NODES:
                if words := self._words(node_id):
                    yield from self.acknowledge(node_id, words)
                    if random.random() < 0.15:  # again, as after a lost answer
                        yield from self.acknowledge(node_id, words)
            yield from self._seldom()

    def _pause(self) -> int:
        random = self.world.random
        if random.random() < 0.12:
            return random.randrange(LOCK_MS // 2, 2 * LOCK_MS)  # beyond its locks
        return random.randrange(60)

    def _seldom(self) -> Steps:
        random = self.world.random
        chance = random.random()
        if chance < 0.04:
            for node_id in list(self._sessions):
                yield from self.acknowledge(node_id, self._words(node_id), closes=True)
        elif chance < 0.07:
            for node_id in list(self._sessions):
                self._hang_up(node_id)
        elif chance < 0.09:
            yield from self.beat(-1)
            self._member_epoch = 0

    def _words(self, node_id: int) -> dict[Place, list[Batch]]:
        """Return acknowledgements of most records that it has of a broker, or nonsense."""
        random = self.world.random
        words: dict[Place, list[Batch]] = {}
        kept = []
        for place, at, span in self._holds:
            if at != node_id or random.random() < 0.1:
                kept.append((place, at, span))
                continue
            first, last = span
            if last > first and random.random() < 0.25:
                middle = random.randrange(first, last)
                kept.append((place, at, (middle + 1, last)))
                last = middle
            types = self._types(place, first, last)
            if RENEW in types:
                kept.append((place, at, (first, last)))
            else:
                self._told.append((place, at, (first, last)))
            words.setdefault(place, []).append((first, last, types))
        self._holds = kept
        for place, at, (first, last) in random.sample(self._told, min(1, len(self._told))):
            if at == node_id and random.random() < 0.1:  # late
                words.setdefault(place, []).append((first, last, [random.choice((1, 2))]))
        if random.random() < 0.06:  # somebody else's
            place = random.choice(PLACES)
            data = sorted(self._data[place])
            if data:
                first = random.choice(data[-12:])
                words = {place: [(first, first + random.randrange(3), [ACCEPT])]}
        for rows in words.values():
            if random.random() < 0.95:
                rows.sort()
        return {place: rows[:] for place, rows in words.items()}

    def _types(self, place: Place, first: int, last: int) -> list[int]:
        random = self.world.random
        if random.random() < 0.08:
            return [RENEW]
        mixed = random.random() < 0.5
        kinds = [self._kind(place, each) for each in range(first, last + 1)]
        return kinds if mixed or GAP in kinds else kinds[:1]

    def _kind(self, place: Place, offset: int) -> int:
        random = self.world.random
        if offset not in self._data[place]:
            return GAP
        return random.choice((*[ACCEPT] * 10, *[RELEASE] * 5, REJECT, REJECT))


class Careful(Member):
    """Takes everything and accepts it, until the world ends it."""

    def life(self) -> Life:
        """Accept all that comes."""
        while True:
            for place in PLACES:
                yield from self.beat()
                while (yield from self.fetch(place)):
                    for node_id in NODES:
                        rows = self._all(node_id)
                        if rows:
                            yield from self.acknowledge(node_id, rows)
            yield Sleep(200)

    def _all(self, node_id: int) -> dict[Place, list[Batch]]:
        rows: dict[Place, list[Batch]] = {}
        for place, at, (first, last) in sorted(self._holds):
            if at == node_id:
                types = [
                    ACCEPT if offset in self._data[place] else GAP
                    for offset in range(first, last + 1)
                ]
                rows.setdefault(place, []).append((first, last, types))
        self._holds = [each for each in self._holds if each[1] != node_id]
        return rows


class Closer(Member):
    """Takes a record and closes its session."""

    has_closed = False

    def life(self) -> Life:
        """Fetch until something comes, then close."""
        while not (yield from self.fetch(PLACES[0])):
            yield Sleep(20)
        ((_, node_id, _), *_) = self._holds
        answer = yield from self.acknowledge(node_id, {}, closes=True)
        self.has_closed = answer is not None and not answer.error_code


def _offsets(data: bytes) -> set[int]:
    """Return the offsets of records in a record set."""
    found: set[int] = set()
    for batch in iter_batches(data):
        assert isinstance(batch, RecordBatch)
        if not batch.is_control:
            found |= {offset for offset, *_ in tuples(batch)}
    return found
