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
    from collections.abc import Iterable, Sequence

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.broker.topics import BrokerEndpoint
    from embedlog.coordinator.share.state_client import Place
    from embedlog.runtime.pending import Pending
    from embedlog.sharing.share_sessions import ShareSession
    from wire.schemas import share_acknowledge, share_fetch

    Topics = Sequence[share_fetch.FetchTopic] | Sequence[share_acknowledge.AcknowledgeTopic]

_MEMBER_ID_LENGTH_MAX = 36


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


def is_leader_error(code: int) -> bool:
    """Return whether an answer with this code names the partition's leader."""
    return code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def node_endpoints(
    broker: Broker, context: RequestContext, leaders: Iterable[int]
) -> list[BrokerEndpoint]:
    """Return the addresses of brokers that an answer names as leaders."""
    found = [topics.node(broker, context, leader) for leader in sorted(leaders)]
    return [each for each in found if each is not None]
