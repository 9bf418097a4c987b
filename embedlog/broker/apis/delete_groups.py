"""DeleteGroups (api key 42), versions 0-3: delete groups without members, and their offsets.

v2 flexible. v3 error message, and the failure of the plugin for descriptions of topologies. As in
Kafka, the answer has a repeated group only once.
"""

from __future__ import annotations

from embedlog.coordinator.answers import answered, combined, then
from wire.error_codes import ErrorCode
from wire.schemas.delete_groups import DeletableGroupResult, DeleteGroupsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.group.group_shard import GroupShard
    from embedlog.coordinator.result import Result
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.delete_groups import DeleteGroupsRequest

_FIRST_WITH_FAILURES = 3
"""The first version that knows GROUP_DELETION_FAILED, the failure of a plugin."""


def handle(
    broker: Broker, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Pending[DeleteGroupsResponse]:
    version = context.api_version
    groups = [
        _delete(broker, group_id, version) for group_id in dict.fromkeys(request.groups_names)
    ]
    return combined(groups, lambda results: DeleteGroupsResponse(results=results))


def _delete(
    broker: Broker, group_id: str, version: int
) -> DeletableGroupResult | Pending[DeletableGroupResult]:
    def delete(shard: GroupShard) -> Result[DeletableGroupResult]:
        return shard.delete_group(group_id, DeletableGroupResult(group_id=group_id))

    def refused(error: KafkaError) -> DeletableGroupResult:
        code = error.code
        if code == ErrorCode.GROUP_DELETION_FAILED and version < _FIRST_WITH_FAILURES:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        return DeletableGroupResult(group_id=group_id, error_code=code, error_message=error.message)

    coordinator = broker.group_coordinator
    if coordinator.descriptions is None:
        return answered(coordinator.write(group_id, delete), refused)
    forgotten = coordinator.forget_description(group_id)
    return answered(then(forgotten, lambda _: coordinator.write(group_id, delete)), refused)


def refused(request: DeleteGroupsRequest, version: int, error: KafkaError) -> DeleteGroupsResponse:
    """Return the error in every group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error.code)
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
