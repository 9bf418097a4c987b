"""ApiVersions (API key 18), versions 0-5, flexible from 3: which APIs and versions a broker speaks.

v1 throttle time. v3 name and version of the client software; features (tagged). v4 includes
features whose minimum version is 0. v5 the cluster and node that the client wants to reach. The
response header always has version 0, so that every client can read the error UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, boolean, int16, int32, int64, message, string, struct


@message(api=ApiKey.API_VERSIONS, kind="request", versions="0-5", flexible="3+")
class ApiVersionsRequest(Request["ApiVersionsResponse"]):
    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)


@struct
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey:
    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


@struct
class FinalizedFeatureKey:
    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


@message(api=ApiKey.API_VERSIONS, kind="response", versions="0-5", flexible="3+")
class ApiVersionsResponse:
    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, "3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, "3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean("3+", tag=3, ignorable=True)
