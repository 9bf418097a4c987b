"""What ShareFetch and ShareAcknowledge have in common."""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import topics
from embedlog.controller import features
from embedlog.coordinator.answers import combined
from embedlog.sharing.share_sessions import FINAL
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.broker.topics import BrokerEndpoint
    from embedlog.coordinator.share.state_client import Place
    from embedlog.runtime.pending import Pending
    from embedlog.sharing.share_sessions import ShareSession
    from wire.schemas import share_acknowledge, share_fetch

    Leaders = dict[Place, tuple[int, int]]
    """Partition -> the node id of its leader, and the leader epoch."""
    Topics = Sequence[share_fetch.FetchTopic] | Sequence[share_acknowledge.AcknowledgeTopic]

_MEMBER_ID_LENGTH_MAX = 36
_OF_LEADERS = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}
"""The errors of partitions whose leaders an answer names."""


def check_member(broker: Broker, group_id: str | None, member_id: str | None) -> tuple[str, str]:
    """Return group and member of a request, if their form is right.

    Raises:
        UnsupportedVersion: share groups are off.
        InvalidRequest: there is no group id, or the member id is empty or too long.
    """
    if not broker.image.feature_level(features.SHARE):
        raise errors.UnsupportedVersion()
    if group_id is None or not member_id or len(member_id) > _MEMBER_ID_LENGTH_MAX:
        raise errors.InvalidRequest()
    return group_id, member_id


def last_batches(asked: Topics) -> dict[Place, list[tuple[int, int, list[int]]]]:
    """Return the acknowledgement batches by partition; its last entry in the request counts."""
    return {
        (topic.topic_id, partition.partition_index): [
            (batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in partition.acknowledgement_batches
        ]
        for topic in asked
        for partition in topic.partitions
    }


def close_after(
    broker: Broker,
    context: RequestContext,
    session: ShareSession,
    epoch: int,
    answers: Sequence[errors.KafkaError | None | Pending[errors.KafkaError | None]],
) -> None:
    """If the request closes the session, release its records once they are acknowledged."""
    if epoch == FINAL:
        forgets = context.connection is None  # a client in this process has no connection to close

        def end(_errors: list[errors.KafkaError | None]) -> None:
            broker.sharing.end_session(session, forgets=forgets)

        combined(answers, end)


def leaders_of(broker: Broker, codes: Mapping[Place, Iterable[int]]) -> Leaders:
    """Return the leaders of the partitions that have an error which tells of another leader."""
    return {
        place: topics.leader_of(broker, broker.topic_name(place[0]), place[1])
        for place, found in codes.items()
        if not _OF_LEADERS.isdisjoint(found)
    }


def endpoints_of(broker: Broker, context: RequestContext, leaders: Leaders) -> list[BrokerEndpoint]:
    """Return the addresses of the leaders that an answer names."""
    nodes = sorted({node_id for node_id, _ in leaders.values()})
    found = [topics.node(broker, context, node_id) for node_id in nodes]
    return [each for each in found if each is not None]
