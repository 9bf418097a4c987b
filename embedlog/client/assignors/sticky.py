"""sticky: balances the shares as evenly as possible, with as few moves as possible.

The user data holds the member's last assignment, big-endian; version 0 ends before the generation:

    topics       int32 count, then for each
        name         int16 size, UTF-8
        partitions   int32 count, int32 each
    generation   int32
"""

from __future__ import annotations

from struct import Struct, pack
from struct import error as StructError

from embedlog.client.assignors.assignor import Assignment, Assignor
from embedlog.client.assignors.balancing import balance
from embedlog.client.assignors.equal_shares import share_equally
from embedlog.client.assignors.racks import Nearness
from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from embedlog.client.assignors.assignor import GroupTopics, MemberSubscription

    Shares = dict[str, list[TopicPartition]]

_INT16 = Struct(">h")
_INT32 = Struct(">i")
NO_GENERATION = -1


class Claim:
    """The partitions that a member claims to hold, and the generation in which it got them."""

    __slots__ = ("generation_id", "partitions")

    def __init__(self, partitions: Iterable[TopicPartition] = (), generation_id: int = -1) -> None:
        self.partitions = list(partitions)
        self.generation_id = generation_id


class StickyAssignor(Assignor):
    """Eager and sticky: members give up all partitions, but claim them again in their user data."""

    name = "sticky"

    def __init__(self) -> None:
        self._given: Claim | None = None

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        return None if self._given is None else encode_claim(self._given)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._given = Claim(assignment.partitions, generation_id)

    def assign(
        self, topics: GroupTopics, members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        claims = {
            member_id: decode_claim(member.user_data) for member_id, member in members.items()
        }
        shares = assign_sticky(topics, members, claims)
        return {member_id: Assignment(partitions) for member_id, partitions in shares.items()}


def encode_claim(claim: Claim) -> bytes:
    """Encode a claim as version 1 of the user data."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in claim.partitions:
        by_topic.setdefault(topic, []).append(number)
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name]
        parts.append(pack(f">{len(numbers) + 1}i", len(numbers), *numbers))
    parts.append(_INT32.pack(claim.generation_id))
    return b"".join(parts)


def decode_claim(data: bytes | None) -> Claim:
    """Decode user data of either version; an empty claim if it is malformed, as in Kafka."""
    if data is None:
        return Claim()
    try:
        claim, position = _decode_topics(bytes(data))
    except (StructError, UnicodeDecodeError, IndexError):
        return Claim()
    if position + _INT32.size <= len(data):
        claim.generation_id = _INT32.unpack_from(data, position)[0]
    return claim


def _decode_topics(data: bytes) -> tuple[Claim, int]:
    claim = Claim()
    (topic_count,) = _INT32.unpack_from(data)
    position = _INT32.size
    for _ in range(topic_count):
        (size,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        topic = data[position : position + size].decode()
        position += size
        (count,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        for _ in range(count):
            (number,) = _INT32.unpack_from(data, position)
            claim.partitions.append(TopicPartition(topic, number))
            position += _INT32.size
    return claim, position


def assign_sticky(
    topics: GroupTopics,
    members: Mapping[str, MemberSubscription],
    claims: Mapping[str, Claim],
) -> Shares:
    """Return the partitions of each member, sorted by topic and number.

    With equal subscriptions the shares differ by one at most, and a member keeps each partition
    that fits into its share. With different subscriptions no single move makes the shares more
    even.
    """
    asked = {member_id: frozenset(member.topics) for member_id, member in members.items()}
    partitions = topics.partitions_of(topic for each in asked.values() for topic in each)
    held = _valid_claims(set(partitions), asked, claims)
    near = Nearness(members, partitions, topics.racks)
    if len(set(asked.values())) == 1:
        shares = share_equally(partitions, held, near)
    else:
        shares = balance(partitions, asked, held, near)
    return {member_id: sorted(mine) for member_id, mine in shares.items()}


def _valid_claims(
    partitions: set[TopicPartition],
    asked: Mapping[str, frozenset[str]],
    claims: Mapping[str, Claim],
) -> Shares:
    """Return the partitions that each member claims and may keep.

    If two members claim a partition, the later generation wins; with equal generations neither
    member keeps it.
    """
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, claim in claims.items():
        for partition in claim.partitions:
            if partition not in partitions or partition.topic not in asked[member_id]:
                continue
            generation_id, owner = best.get(partition, (NO_GENERATION - 1, None))
            if claim.generation_id > generation_id:
                best[partition] = claim.generation_id, member_id
            elif claim.generation_id == generation_id and owner != member_id:
                best[partition] = generation_id, None
    held: Shares = {member_id: [] for member_id in asked}
    for partition, (_, owner) in sorted(best.items(), key=lambda item: item[0]):
        if owner is not None:
            held[owner].append(partition)
    return held
