"""ShareFetch (api key 78), versions 1-2: acquire records of a share group, and acknowledge earlier
ones.

v2 acquire mode, renewal of locks. The member's share session has the partitions. Acknowledgements
come first; their errors do not keep a partition from being fetched. The answer waits until
`min_bytes` can be read, at most `max_wait_ms`. The answer has whole batches of the log as views,
and `acquired_records` says which of their records the member may use. Later answers of a session
leave out partitions without records and errors.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.share_requests import (
    check_member,
    close_after,
    endpoints_of,
    last_batches,
    leaders_of,
)
from embedlog.coordinator.answers import combined, then
from embedlog.coordinator.share.keys import by_topic
from embedlog.replication.partition import Isolation
from embedlog.sharing.acquisition import BATCH_OPTIMIZED, RECORD_LIMIT, Wish
from embedlog.sharing.share_fetch import ShareFetchParams
from embedlog.sharing.share_sessions import FINAL, OPENING
from wire.schemas.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.share.state_client import Place
    from embedlog.runtime.pending import Pending
    from embedlog.sharing.share_fetch import FetchPlace
    from embedlog.sharing.share_sessions import ShareSession
    from wire.schemas.share_fetch import ShareFetchRequest

    Outcomes = dict[Place, errors.KafkaError | None]

NO_RECORDS = b""


def handle(
    broker: Broker, context: RequestContext, request: ShareFetchRequest
) -> ShareFetchResponse | Pending[ShareFetchResponse]:
    group_id, member_id = check_member(broker, request.group_id, request.member_id)
    if request.is_renew_ack and (
        request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms
    ):
        raise errors.InvalidRequest()
    sharing = broker.sharing
    batches = last_batches(request.topics)
    acknowledged = {place: rows for place, rows in batches.items() if rows}
    epoch = request.share_session_epoch
    if epoch == OPENING:
        if acknowledged:
            raise errors.InvalidRequest()
        try:
            session = sharing.sessions.open((group_id, member_id), context.connection)
        except errors.ShareSessionLimitReached as error:
            return _late(broker, request, error)
    else:
        session = sharing.sessions.go_on((group_id, member_id), epoch)
    if epoch != FINAL:
        forgotten = [
            (topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        sharing.sessions.update(session, batches, forgotten, is_opening=epoch == OPENING)
    if request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
        raise errors.UnknownServerError()
    answers = [
        sharing.acknowledge(
            group_id,
            member_id,
            place,
            rows,
            version=context.api_version,
            is_renewal=request.is_renew_ack,
        )
        for place, rows in acknowledged.items()
    ]
    close_after(broker, context, session, epoch, answers)
    fetched = _fetch(broker, context, request, session)

    def respond(found: list[errors.KafkaError | None]) -> ShareFetchResponse:
        outcomes = dict(zip(acknowledged, found, strict=True))
        places = () if fetched is None else fetched.result()
        return _response(broker, context, session, places, outcomes, is_first=epoch == OPENING)

    if fetched is None or fetched.done():
        return combined(answers, respond)
    return then(fetched, lambda _: combined(answers, respond))


def refused(
    _request: ShareFetchRequest, _version: int, error: errors.KafkaError
) -> ShareFetchResponse:
    """Return the error without a message, as Kafka does."""
    return ShareFetchResponse(error_code=error.code)


def _late(
    broker: Broker, request: ShareFetchRequest, error: errors.KafkaError
) -> Pending[ShareFetchResponse]:
    """Answer with an error when the fetch's time is over, so that the client does not hurry."""
    pause = broker.sharing.context.pause(request.max_wait_ms)
    return then(pause, lambda _: ShareFetchResponse(error_code=error.code))


def _fetch(
    broker: Broker, context: RequestContext, request: ShareFetchRequest, session: ShareSession
) -> Pending[Sequence[FetchPlace]] | None:
    """Fetch the partitions of the session; None if the request wants no records."""
    epoch = request.share_session_epoch
    is_idle = request.max_records <= 0 or request.max_bytes == 0 or request.is_renew_ack
    if is_idle or epoch == FINAL or not session.places:
        return None
    sharing = broker.sharing
    settings = sharing.context.settings(session.group_id)
    wish = Wish(
        member_id=session.member_id,
        mode=request.share_acquire_mode,
        record_count_max=request.max_records,
        batch_size=max(1, request.batch_size),
        lock_count_max=settings.lock_count_max,
        delivery_limit=settings.delivery_limit,
        lock_duration_ms=settings.lock_duration_ms,
        is_ordered=settings.is_ordered,
    )
    params = ShareFetchParams(
        wish,
        isolation=(
            Isolation.LAST_STABLE if settings.is_committed_only else Isolation.HIGH_WATERMARK
        ),
        max_bytes=min(request.max_bytes, broker.fetch_max_bytes),
        min_bytes=request.min_bytes,
        max_wait_ms=request.max_wait_ms,
    )
    operation = sharing.fetch(session, session.served(epoch), params)
    connection = context.connection
    if connection is not None and not operation.is_completed:
        broker.parked.park(connection, operation)
        operation.pending.add_callback(lambda _: broker.parked.unpark(connection))
    return operation.pending


def _response(
    broker: Broker,
    context: RequestContext,
    session: ShareSession,
    places: Sequence[FetchPlace],
    outcomes: Outcomes,
    *,
    is_first: bool,
) -> ShareFetchResponse:
    lock_ms = broker.sharing.context.settings(session.group_id).lock_duration_ms
    rows: dict[Place, PartitionData] = {}
    for fetched in places:
        if fetched.is_loading and fetched.error is None:
            continue
        row = _row(fetched)
        entry = fetched.entry
        is_told = is_first or entry.answers or row.error_code or row.acquired_records
        entry.answers = bool(row.error_code)
        if is_told:
            rows[entry.place] = row
    for place, error in outcomes.items():
        row = rows.setdefault(place, PartitionData(partition_index=place[1], records=NO_RECORDS))
        if error is not None:
            row.acknowledge_error_code = error.code
            row.acknowledge_error_message = error.message
    response = ShareFetchResponse(acquisition_lock_timeout_ms=lock_ms)
    codes = {place: (row.error_code, row.acknowledge_error_code) for place, row in rows.items()}
    leaders = leaders_of(broker, codes)
    for place, (leader, epoch) in leaders.items():
        rows[place].current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    response.responses = [
        ShareFetchableTopicResponse(
            topic_id=topic_id, partitions=[rows[place] for place in of_topic]
        )
        for topic_id, of_topic in by_topic(rows)
    ]
    response.node_endpoints = [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in endpoints_of(broker, context, leaders)
    ]
    return response


def _row(fetched: FetchPlace) -> PartitionData:
    index = fetched.entry.place[1]
    error, taken = fetched.error, fetched.taken
    if error is not None:
        return PartitionData(
            partition_index=index,
            error_code=error.code,
            error_message=error.message,
            records=NO_RECORDS,
        )
    if taken is None:
        return PartitionData(partition_index=index, records=NO_RECORDS)
    return PartitionData(
        partition_index=index,
        records=taken.records,
        acquired_records=[
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in taken.acquired
        ],
    )
