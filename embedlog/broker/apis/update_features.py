"""UpdateFeatures (api key 57), versions 0-2: change the levels of the cluster's features, all or
none.

v0 only upgrades: Kafka no longer reads its flag that allows downgrades. v1 has the type of each
update, and can validate only. v2 no longer has a result for each feature. One error code covers all
updates.
"""

from __future__ import annotations

from embedlog.controller.features import UPGRADE
from wire.schemas.update_features import UpdatableFeatureResult, UpdateFeaturesResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from wire.schemas.update_features import UpdateFeaturesRequest

_FIRST_WITH_KINDS = 1
_LAST_WITH_RESULTS = 1
_DONE = "NONE"
"""Kafka's error message for a feature without an error."""


def handle(
    broker: Broker, context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    has_kinds = context.api_version >= _FIRST_WITH_KINDS
    updates = [
        (each.feature, each.max_version_level, each.upgrade_type if has_kinds else UPGRADE)
        for each in request.feature_updates
    ]
    broker.controller.update_features(updates, validate_only=request.validate_only)
    results = []
    if context.api_version <= _LAST_WITH_RESULTS:
        results = [
            UpdatableFeatureResult(feature=name, error_message=_DONE) for name, *_ in updates
        ]
    return UpdateFeaturesResponse(error_message=None, results=results)
