"""ListGroups (api key 16), versions 0-5: the groups that this broker coordinates.

v3 flexible. v4 filter by state. v5 filter by type. Case does not matter in filters, and one that
names what does not exist finds nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.pending import Pending
    from wire.schemas.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(
    broker: Broker, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Pending[ListGroupsResponse]:
    return broker.group_coordinator.list_groups(context, request)
