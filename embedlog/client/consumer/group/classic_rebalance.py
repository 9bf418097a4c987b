"""`ClassicRebalance`: the consumer's part in a classic rebalance, without the requests.

Eager: the consumer gives up all partitions before it joins. Cooperative: it gives up the partitions
that the new assignment lacks, and one more round assigns them to other members (KIP-429).
"""

from __future__ import annotations

from embedlog.client.assignors import rebalance_protocol, resolve
from embedlog.client.assignors.assignor import (
    COOPERATIVE,
    Assignment,
    GroupTopics,
    MemberSubscription,
)
from embedlog.client.consumer.group.embedded_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from embedlog.client.errors import IllegalState
from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from embedlog.client.assignors.assignor import Racks
    from embedlog.client.consumer.group.auto_commit import AutoCommit
    from embedlog.client.consumer.group.listener_calls import ListenerCalls
    from embedlog.client.consumer.group.offset_commits import Commit, OffsetCommits
    from embedlog.client.consumer.parts import ConsumerParts
    from wire.schemas.join_group import JoinGroupResponse

_KNOWN_TO_BE_COOPERATIVE = "cooperative-sticky"


class ClassicRebalance:
    """A member's part in a round: give up partitions, assign all if leader, take over its share."""

    def __init__(
        self,
        parts: ConsumerParts,
        calls: ListenerCalls,
        commits: OffsetCommits,
        auto_commit: AutoCommit,
    ) -> None:
        settings = parts.settings
        self._parts = parts
        self._subscription = parts.subscription
        self._calls = calls
        self._commits = commits
        self._auto_commit = auto_commit
        self._rack: str | None = settings["client.rack"] or None
        self._assignors = resolve(settings["partition.assignment.strategy"])
        self.protocol = rebalance_protocol(self._assignors)
        self._commit: Commit | None = None
        self._prepare_deadline: int | None = None
        self._joined_topics: frozenset[str] | None = None
        self._watched: dict[str, int] | None = None
        """If this member leads the group: the partition counts that the assignment is based on. A
        change of the counts requires a new rebalance. None if this member does not lead."""
        self._watched_racks: Racks = {}
        """If this member leads the group: the racks of replicas that the assignment is based on."""
        self._election_answers: int | None = None
        """While the leader waits for a topic's metadata: the number of metadata answers when the
        wait began. Otherwise None."""
        self._seen_answers = 0

    def rejoin_reason(self) -> str:
        """Return the reason why the group should rebalance; an empty string if there is none."""
        if self._joined_topics is None:
            return ""
        if self._joined_topics != self._subscription.topics:
            return "the subscription has changed"
        answers = self._parts.metadata.answer_count
        if self._watched is not None and answers != self._seen_answers:
            self._seen_answers = answers
            if self._partition_counts() != self._watched:
                return "the topics' partitions have changed"
            if self._rack is not None and self._racks() != self._watched_racks:
                return "the racks of the topics' replicas have changed"
        return ""

    # Before joining

    def prepare(self, now_ms: int, *, is_member: bool) -> int | None:
        """Commit the positions, then give up partitions.

        Returns the milliseconds that the commit may still take, or None when all is done.
        """
        subscription = self._subscription
        if self._prepare_deadline is None:
            self._prepare_deadline = now_ms + self._parts.settings["max.poll.interval.ms"]
            subscription.mark_revoking(self._to_give_up())
            if self._auto_commit.is_on and is_member:
                self._commit = self._auto_commit.begin(retries=True)
                self._commits.advance(now_ms)
        commit = self._commit
        if commit is not None and not commit.is_done:
            left = self._prepare_deadline - now_ms
            if left > 0:
                return left
            self._commits.give_up(commit)
        self._commit = self._prepare_deadline = None
        self.give_up(is_member=is_member)
        return None

    def give_up(self, *, is_member: bool) -> None:
        """Give up partitions before a round begins.

        A member gives up all partitions as revoked, or in the cooperative protocol only partitions
        of topics that it no longer subscribes to. A consumer that is no member loses all.
        """
        subscription = self._subscription
        owned = list(subscription.partitions)
        going = self._to_give_up() if is_member else owned
        if not is_member:
            self._calls.lost(owned)
        elif going or self.protocol != COOPERATIVE:
            self._calls.revoked(going)
        if subscription.is_automatic:
            gone = set(going)
            subscription.assign_from_group([each for each in owned if each not in gone])
        self._stop_watching()

    def give_up_all(self, *, is_member: bool) -> None:
        """Give up all partitions, because the consumer leaves the group."""
        owned = list(self._subscription.partitions)
        if is_member and owned:
            self._calls.revoked(owned)
        elif not is_member:
            self._calls.lost(owned)
        self._subscription.assign_from_group([])
        self._stop_watching()
        self._joined_topics = None
        self._commit = self._prepare_deadline = None

    def _to_give_up(self) -> list[TopicPartition]:
        owned = self._subscription.partitions
        if self.protocol != COOPERATIVE:
            return list(owned)
        return [each for each in owned if not self._subscription.is_asked_for(each.topic)]

    def _stop_watching(self) -> None:
        subscription = self._subscription
        self._parts.metadata.wanted.forget(subscription.group_topics - subscription.topics)
        subscription.group_topics = frozenset()
        self._watched, self._watched_racks = None, {}
        self._election_answers = None

    # Joining

    def protocols(self, generation_id: int) -> list[tuple[str, bytes]]:
        """Return the assignors in the user's order, each with this member's subscription."""
        subscription = self._subscription
        self._joined_topics = subscription.topics
        topics = sorted(subscription.topics)
        offers = []
        for assignor in self._assignors:
            user_data = getattr(assignor, "user_data", None)
            asked = MemberSubscription(
                topics,
                user_data=user_data(topics) if user_data is not None else None,
                owned_partitions=subscription.partitions,
                generation_id=generation_id,
                rack_id=self._rack,
            )
            offers.append((assignor.name, encode_subscription(asked)))
        return offers

    def elect(self, answer: JoinGroupResponse) -> dict[str, bytes] | None:
        """Assign the partitions as leader, and return the encoded assignment of each member.

        Returns None while the metadata lacks a subscribed topic.
        """
        members = {
            each.member_id: decode_subscription(each.metadata, each.group_instance_id)
            for each in answer.members
        }
        wanted = frozenset(topic for each in members.values() for topic in each.topics)
        metadata = self._parts.metadata
        if not metadata.wanted.follows_all:
            for topic in wanted:
                metadata.want(topic)
        unknown = any(
            each not in metadata.topics and each not in metadata.errors for each in wanted
        )
        if unknown and self._election_answers is None:
            self._election_answers = metadata.answer_count
            metadata.request_update()
        if unknown and self._election_answers == metadata.answer_count:
            return None
        self._election_answers = None
        self._subscription.group_topics = wanted
        self._watched, racks = self._partition_counts(), self._racks()
        self._watched_racks = racks
        self._seen_answers = metadata.answer_count
        if answer.skip_assignment:
            return {}
        (assignor,) = (each for each in self._assignors if each.name == answer.protocol_name)
        given = assignor.assign(GroupTopics(self._watched, racks), members)
        if self.protocol == COOPERATIVE and assignor.name != _KNOWN_TO_BE_COOPERATIVE:
            _check_cooperative(assignor.name, given, members)
        return {
            member_id: encode_assignment(given.get(member_id, Assignment()))
            for member_id in members
        }

    def _partition_counts(self) -> dict[str, int]:
        known = self._parts.metadata.topics
        return {
            name: len(known[name].partitions)
            for name in self._subscription.group_topics
            if name in known
        }

    def _racks(self) -> Racks:
        metadata = self._parts.metadata
        racks = {
            node_id: node.rack for node_id, node in metadata.cluster.by_id.items() if node.rack
        }
        if not racks:
            return {}
        return {
            TopicPartition(name, each.partition): frozenset(
                racks[replica] for replica in each.replicas if replica in racks
            )
            for name in self._subscription.group_topics
            if name in metadata.topics
            for each in metadata.topics[name].partitions
        }

    # After the round

    def complete(
        self,
        generation_id: int,
        protocol: str,
        assignment: bytes,
        request_rejoin: Callable[[str], None],
    ) -> None:
        """Take over the assignment of the round, and call the listener.

        In the cooperative protocol, revoke the owned partitions that the assignment lacks, and
        request the round that assigns them to other members.
        """
        subscription = self._subscription
        given = decode_assignment(assignment)
        if not all(subscription.is_asked_for(topic) for topic, _ in given.partitions):
            request_rejoin("the assignment has topics that are not subscribed")
            return
        (assignor,) = (each for each in self._assignors if each.name == protocol)
        owned = list(subscription.partitions)
        assigned = set(given.partitions)
        if self.protocol == COOPERATIVE:
            revoked = [each for each in owned if each not in assigned]
            if revoked:
                self._calls.revoked(revoked)
                request_rejoin("partitions were revoked and can be handed over")
        # A member with outdated metadata learns here of new topics that match its pattern.
        subscription.topics |= {topic for topic, _ in assigned}
        self._joined_topics = subscription.topics
        remember = getattr(assignor, "on_assignment", None)
        if remember is not None:
            remember(given, generation_id)
        subscription.assign_from_group(given.partitions)
        self._auto_commit.restart(self._parts.transport.runtime.clock.monotonic_ms())
        self._calls.assigned(each for each in given.partitions if each not in owned)


def _check_cooperative(
    name: str, given: Mapping[str, Assignment], members: Mapping[str, MemberSubscription]
) -> None:
    """Raise IllegalState if an assignor moved a partition that another member still owns."""
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member_id, member in members.items():
        mine = set(given[member_id].partitions) if member_id in given else set()
        owned = set(member.owned_partitions)
        added |= mine - owned
        revoked |= owned - mine
    moved = sorted(added & revoked)
    if moved:
        raise IllegalState(
            f"assignor {name!r} gives {', '.join(map(str, moved))} to a member while another "
            f"holds it: a cooperative assignor must wait for the next round"
        )
