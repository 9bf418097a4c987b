"""`ShareLeaders`: sends the fetches and acknowledgements of one share consumer.

Each leader has at most one open request, because all requests of a session take an epoch. A fetch
carries the acknowledgements that wait for its leader; without a fetch, a ShareAcknowledge does.
Renewals always go in a ShareAcknowledge, because nothing is fetched while they are under way.

The consumer does not fetch ahead of the application: the time in which a record is locked begins
when the broker answers.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import sooner
from embedlog.client.share.acknowledgements import Acknowledgements
from embedlog.client.share.answers import ShareAnswers
from embedlog.client.share.leader import Leader, SentRequest
from embedlog.client.share.session import FetchLimits, ShareSession
from embedlog.client.share.settings import RECORD_LIMIT
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from embedlog.client.share.acknowledgements import ShareCommit
    from embedlog.client.share.in_flight import Delivery
    from embedlog.client.share.parts import ShareParts
    from embedlog.common import TopicPartition
    from wire.schema import Request

    Keys = dict[tuple[bytes, int], TopicPartition]

_MOVED = "the partition has another leader, which delivers the record again"
_NO_SESSION = "the session with the leader has ended, and with it the lock of the record"


class ShareLeaders:
    """The leaders of the partitions of one consumer. Used by one thread at a time."""

    def __init__(self, parts: ShareParts) -> None:
        settings = parts.settings
        self._parts = parts
        self._metadata = parts.metadata
        self._assignment = parts.assignment
        self._outcomes = parts.outcomes
        self.answers = ShareAnswers(parts)
        self._is_record_limit = settings["share.acquire.mode"] == RECORD_LIMIT
        self.limits = FetchLimits(
            max_wait_ms=settings["fetch.max.wait.ms"],
            min_bytes=settings["fetch.min.bytes"],
            max_bytes=settings["fetch.max.bytes"],
            count_max=settings["max.poll.records"],
            is_record_limit=self._is_record_limit,
        )
        self._by_node: dict[int, Leader] = {}
        self._closing: list[tuple[Leader, SentRequest]] = []
        self._last_fetched = -1
        """In the mode record_limit, the leader of the last fetch."""

    @property
    def is_acknowledging(self) -> bool:
        """True while acknowledgements have no outcome."""
        return any(
            each.waiting or (each.sent is not None and each.sent.acknowledgements)
            for each in self._by_node.values()
        )

    @property
    def is_fetching(self) -> bool:
        """True while a fetch has no answer."""
        leaders = self._by_node.values()
        return any(each.sent is not None and each.sent.is_fetch for each in leaders)

    def lost_sessions(self) -> list[int]:
        """Return the leaders whose sessions, and with them all locks, were lost since the last
        call.
        """
        lost = []
        for leader in self._by_node.values():
            if leader.told_reset_count != leader.session.reset_count:
                leader.told_reset_count = leader.session.reset_count
                lost.append(leader.node_id)
        return lost

    def queue(
        self,
        taken: Iterable[tuple[Delivery, Mapping[int, int]]],
        deadline_ms: int,
        commit: ShareCommit | None = None,
    ) -> None:
        """Send these acknowledgements with the next requests, again until `deadline_ms`."""
        for delivery, types in taken:
            one = Acknowledgements(delivery, types, deadline_ms)
            if commit is not None:
                one.commit = commit
                commit.wait_for(one)
            self._leader(delivery.node_id).waiting.append(one)

    def advance(self, now_ms: int, *, fetches: bool) -> int | None:
        """Take answers, send acknowledgements and, with `fetches`, send fetches.

        Returns milliseconds to the next useful pass, if known.
        """
        self.take_arrived(now_ms)
        for leader in self._by_node.values():
            if leader.waiting:
                self._drop_hopeless(leader, now_ms)
        wanted = self._wanted() if fetches else {}
        fetched = self._to_fetch(wanted, now_ms)
        delay: int | None = None
        for leader in list(self._by_node.values()):
            if leader.sent is not None:
                continue
            is_wanted = leader.node_id in wanted
            if leader.is_uncertain:
                self._end_session(leader)
            if leader.not_before_ms > now_ms and (is_wanted or leader.waiting):
                delay = sooner(delay, leader.not_before_ms - now_ms)
            elif leader.node_id in fetched and not any(one.renews for one in leader.waiting):
                self._fetch(leader, wanted[leader.node_id])
            elif leader.waiting:
                self._acknowledge(leader)
        if self.take_arrived(now_ms):  # in process the answers arrive at once
            return 0
        return delay

    def take_arrived(self, now_ms: int) -> bool:
        """Take the answers that have arrived; True if there was one."""
        found = False
        for leader in self._by_node.values():
            sent = leader.sent
            if sent is not None and sent.pending.done():
                found = True
                leader.sent = None
                self.answers.take(leader, sent, now_ms)
        for leader, sent in list(self._closing):
            if sent.pending.done():
                self._closing.remove((leader, sent))
                self.answers.take(leader, sent, now_ms)
        return found

    def close(self) -> list[Pending[Any]]:
        """Send the waiting acknowledgements and end the sessions, which releases all other records.

        Returns the answers to wait for; `take_arrived` takes them. A fetch that waits is left out
        unless it carries acknowledgements.
        """
        for leader in self._by_node.values():
            session = leader.session
            if not session.epoch and leader.sent is None and not leader.is_uncertain:
                self._fail(leader, leader.waiting, _NO_SESSION)
                continue
            chosen, types = leader.take_waiting() if session.epoch else ([], {})
            renews = any(one.renews for one in chosen)
            request = session.acknowledge(types, renews=renews, closes=True)
            pending = self._parts.send(leader.node_id, request)
            self._closing.append((leader, SentRequest(pending, chosen, None)))
        told = [leader.sent for leader in self._by_node.values() if leader.sent is not None]
        carriers = [sent.pending for sent in told if sent.acknowledgements]
        return [*carriers, *(sent.pending for _, sent in self._closing)]

    def fail_all(self) -> None:
        """End all acknowledgements without an outcome: the consumer is closed."""
        for leader in self._by_node.values():
            sent, leader.sent = leader.sent, None
            closing = [each for owner, each in self._closing if owner is leader]
            for each in [sent, *closing]:
                if each is not None:
                    self._fail(leader, each.acknowledgements, "the consumer was closed")
            self._fail(leader, leader.waiting, "the consumer was closed")
        self._closing.clear()

    # Sending

    def _leader(self, node_id: int) -> Leader:
        leader = self._by_node.get(node_id)
        if leader is None:
            parts = self._parts
            session = ShareSession(parts.settings["group.id"], parts.member_id)
            leader = self._by_node[node_id] = Leader(node_id, session)
        return leader

    def _wanted(self) -> dict[int, Keys]:
        """Return the assigned partitions by leader. If one has no leader, request metadata."""
        wanted: dict[int, Keys] = {}
        for place, key in self._assignment.partitions().items():
            leader = self._metadata.leader(*key)
            if leader is None:
                self._metadata.request_update()
            else:
                self._leader(leader.leader)
                wanted.setdefault(leader.leader, {})[place] = key
        return wanted

    def _to_fetch(self, wanted: Mapping[int, Keys], now_ms: int) -> Iterable[int]:
        """Return the leaders to fetch from: all, or in the mode record_limit the next one."""
        if not self._is_record_limit:
            return wanted
        leaders = self._by_node
        if any(each.sent is not None and each.sent.is_fetch for each in leaders.values()):
            return ()
        ready = [
            node_id
            for node_id in sorted(wanted)
            if leaders[node_id].sent is None and leaders[node_id].not_before_ms <= now_ms
        ]
        if not ready:
            return ()
        following = [node_id for node_id in ready if node_id > self._last_fetched]
        self._last_fetched = (following or ready)[0]
        return (self._last_fetched,)

    def _fetch(self, leader: Leader, keys: Keys) -> None:
        chosen, types = leader.take_waiting()
        self._parts.counts["fetch-total"] += 1
        self._send(leader, lambda: leader.session.fetch(keys, types, self.limits), chosen, keys)

    def _acknowledge(self, leader: Leader) -> None:
        chosen, types = leader.take_waiting()
        renews = any(one.renews for one in chosen)
        self._send(leader, lambda: leader.session.acknowledge(types, renews=renews), chosen, None)

    def _send(
        self,
        leader: Leader,
        make: Callable[[], Request[Any]],
        chosen: list[Acknowledgements],
        keys: Keys | None,
    ) -> None:
        """Send the request. If Ctrl-C comes meanwhile, it counts as sent, and as failed: nobody
        knows whether the leader will get it."""
        try:
            pending = self._parts.send(leader.node_id, make())
        except BaseException as error:
            pending = Pending()
            pending.fail(error)
            leader.sent = SentRequest(pending, chosen, keys)
            raise
        leader.sent = SentRequest(pending, chosen, keys)

    def _end_session(self, leader: Leader) -> None:
        """End the session that the leader may have; nobody waits for the answer."""
        request = leader.session.acknowledge({}, renews=False, closes=True)
        self._parts.send(leader.node_id, request)
        leader.is_uncertain = False

    def _drop_hopeless(self, leader: Leader, now_ms: int) -> None:
        """Fail waiting acknowledgements that the leader cannot take any more."""
        if leader.sent is None and not leader.session.epoch:
            self._fail(leader, leader.waiting, _NO_SESSION)
            return
        moved = [one for one in leader.waiting if self._has_moved(leader, one)]
        self._fail(leader, moved, _MOVED)
        for one in list(leader.waiting):
            if one.deadline_ms <= now_ms:
                leader.waiting.remove(one)
                text = "the leader did not take the acknowledgements in time"
                self._outcomes.finish(one, one.last_refusal or errors.RequestTimedOut(text))

    def _has_moved(self, leader: Leader, one: Acknowledgements) -> bool:
        known = self._metadata.leader(*one.delivery.key)
        return known is not None and known.leader != leader.node_id

    def _fail(self, leader: Leader, hopeless: Iterable[Acknowledgements], reason: str) -> None:
        for one in list(hopeless):
            if one in leader.waiting:
                leader.waiting.remove(one)
            self._outcomes.finish(one, errors.NotLeaderOrFollower(reason))
