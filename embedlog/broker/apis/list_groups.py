"""ListGroups (api key 16), versions 0-5: the groups that this broker coordinates.

v3 flexible. v4 filter by state. v5 filter by type. Filters ignore case, and unknown states or types
match nothing.
"""

from __future__ import annotations

from embedlog.coordinator.answers import answered, combined
from embedlog.coordinator.group.administration import listed
from wire.schemas.list_groups import ListedGroup, ListGroupsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.list_groups import ListGroupsRequest


def handle(
    broker: Broker, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Pending[ListGroupsResponse]:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    found = broker.group_coordinator.read_all(lambda shard: listed(shard.groups, states, types))

    def response(parts: list[list[ListedGroup]]) -> ListGroupsResponse:
        return ListGroupsResponse(groups=[group for part in parts for group in part])

    # If the log of a shard cannot be read, leave its groups out, like the groups of other brokers.
    return combined([answered(part, lambda _error: []) for part in found], response)
