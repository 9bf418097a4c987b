"""ApiVersions (api key 18), versions 0-5: the served versions, read from the dispatch table.

v1 throttle time. v3 flexible; names of the client's software; features. v4 also lists features
whose lowest version is 0. v5 a client can check that it reached the right cluster and node
(KIP-1242). `server/service.py` itself answers requests of an unsupported version, in the format of
v0.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.controller.features import SUPPORTED
from wire.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext

_FIRST_WITH_SOFTWARE = 3
_FIRST_WITH_ZERO_FEATURES = 4
_FIRST_WITH_CLUSTER = 5
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_INNER = _LETTERS | {"-", "."}


def handle(
    broker: Broker, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    version = context.api_version
    if version >= _FIRST_WITH_SOFTWARE:
        _check_software(request)
    if version >= _FIRST_WITH_CLUSTER:
        _check_identity(broker, request)
    if context.in_process:
        return _response(broker, version)
    known = broker.api_versions.get(version)
    if known is None or known.finalized_features_epoch != broker.image.end_offset:
        known = broker.api_versions[version] = _response(broker, version)
    return known


def _response(broker: Broker, version: int) -> ApiVersionsResponse:
    image = broker.image
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in sorted(dispatch.versions(broker.config).items())
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED.items()
            if low > 0 or version >= _FIRST_WITH_ZERO_FEATURES
        ],
        finalized_features_epoch=image.end_offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.feature_levels.items()
            if name in SUPPORTED
        ],
    )


def _check_software(request: ApiVersionsRequest) -> None:
    for text in (request.client_software_name, request.client_software_version):
        if not text or text[0] not in _LETTERS or text[-1] not in _LETTERS:
            raise errors.InvalidRequest()
        if not _INNER.issuperset(text):
            raise errors.InvalidRequest()


def _check_identity(broker: Broker, request: ApiVersionsRequest) -> None:
    """Refuse a client that names another cluster or another broker."""
    if request.cluster_id is None and request.node_id == -1:
        return
    if request.cluster_id is None or request.node_id == -1:
        raise errors.InvalidRequest()
    if request.cluster_id != broker.cluster_id or request.node_id != broker.node_id:
        raise errors.RebootstrapRequired()
