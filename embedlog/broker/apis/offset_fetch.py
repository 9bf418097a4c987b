"""OffsetFetch (api key 9), versions 0-10: the committed offsets of groups.

In old brokers, v0 requests read from ZooKeeper. v0 answers UNKNOWN_TOPIC_OR_PARTITION for missing
offsets; later versions answer offset -1 without an error. v2 null means all topics; a top-level
error. v5 leader epochs. v6 flexible. v7 the client can require offsets that no open transaction may
change. v8 several groups. v9 member id and epoch. v10 topic ids.
"""

from __future__ import annotations

from embedlog.common import few_of_each
from embedlog.coordinator.answers import answered, combined
from embedlog.coordinator.group.offsets import older_versions
from wire.schemas.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

_FIRST_WITH_TOPIC_IDS = 10


def handle(
    broker: Broker, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Pending[OffsetFetchResponse]:
    version = context.api_version
    if version >= older_versions.FIRST_WITH_GROUPS:
        asked = few_of_each(request.groups, _question)
        groups = [_fetch(broker, group, request, version) for group in asked]
        return combined(groups, lambda found: OffsetFetchResponse(groups=found))
    group = _fetch(broker, older_versions.question(request), request, version)

    def older(found: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
        if found[0].error_code:
            return older_versions.refused(request, version, found[0].error_code)
        return older_versions.answer(found[0], version)

    return combined([group], older)


def _question(asked: OffsetFetchRequestGroup) -> Hashable:
    # An entry without topics is short but may have a long answer, so `few_of_each` limits repeated
    # groups. An entry with topics is as long as its answer, so it never counts as repeated.
    return asked.group_id if asked.topics is None else id(asked)


def _fetch(
    broker: Broker, asked: OffsetFetchRequestGroup, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponseGroup | Pending[OffsetFetchResponseGroup]:
    by_id = version >= _FIRST_WITH_TOPIC_IDS
    require_stable = request.require_stable
    pending = broker.group_coordinator.read(
        asked.group_id,
        lambda shard: shard.fetch_offsets(asked, by_id=by_id, require_stable=require_stable),
    )

    def refused(error: KafkaError) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)

    return answered(pending, refused)


def refused(request: OffsetFetchRequest, version: int, error: KafkaError) -> OffsetFetchResponse:
    """Return the error in every place that the answer of this version has for it."""
    if version >= older_versions.FIRST_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
                for group in request.groups
            ]
        )
    return older_versions.refused(request, version, error.code)
