"""The messages of each API key, imported on first use.

The table repeats four numbers of every declaration, to negotiate versions and read headers without
importing 79 schema modules; a test compares it with the declarations.
"""

from __future__ import annotations

from wire.api_keys import NAMES, ApiKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# API key: (first version, last version, last version that is stable in Kafka 4.4,
#           first flexible version or None)
_VERSIONS: dict[int, tuple[int, int, int, int | None]] = {
    ApiKey.PRODUCE: (0, 13, 13, 9),
    ApiKey.FETCH: (0, 18, 18, 12),
    ApiKey.LIST_OFFSETS: (0, 11, 11, 6),
    ApiKey.METADATA: (0, 13, 13, 9),
    ApiKey.OFFSET_COMMIT: (0, 10, 10, 8),
    ApiKey.OFFSET_FETCH: (0, 10, 10, 6),
    ApiKey.FIND_COORDINATOR: (0, 6, 6, 3),
    ApiKey.JOIN_GROUP: (0, 9, 9, 6),
    ApiKey.HEARTBEAT: (0, 4, 4, 4),
    ApiKey.LEAVE_GROUP: (0, 5, 5, 4),
    ApiKey.SYNC_GROUP: (0, 5, 5, 4),
    ApiKey.DESCRIBE_GROUPS: (0, 6, 6, 5),
    ApiKey.LIST_GROUPS: (0, 5, 5, 3),
    ApiKey.SASL_HANDSHAKE: (0, 1, 1, None),
    ApiKey.API_VERSIONS: (0, 5, 5, 3),
    ApiKey.CREATE_TOPICS: (0, 7, 7, 5),
    ApiKey.DELETE_TOPICS: (0, 6, 6, 4),
    ApiKey.DELETE_RECORDS: (0, 2, 2, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 6, 5, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4, 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5, 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4, 4, 3),
    ApiKey.END_TXN: (0, 5, 5, 3),
    ApiKey.WRITE_TXN_MARKERS: (0, 2, 2, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 6, 6, 3),
    ApiKey.DESCRIBE_ACLS: (0, 3, 3, 2),
    ApiKey.CREATE_ACLS: (0, 3, 3, 2),
    ApiKey.DELETE_ACLS: (0, 3, 3, 2),
    ApiKey.DESCRIBE_CONFIGS: (0, 4, 4, 4),
    ApiKey.ALTER_CONFIGS: (0, 2, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (0, 2, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 5, 5, 2),
    ApiKey.SASL_AUTHENTICATE: (0, 2, 2, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3, 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: (0, 3, 3, 2),
    ApiKey.RENEW_DELEGATION_TOKEN: (0, 2, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (0, 2, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (0, 3, 3, 2),
    ApiKey.DELETE_GROUPS: (0, 3, 3, 2),
    ApiKey.ELECT_LEADERS: (0, 2, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1, 1, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0, 0, 0),
    ApiKey.OFFSET_DELETE: (0, 0, 0, None),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0, 0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2, 2, 0),
    ApiKey.UPDATE_FEATURES: (0, 2, 2, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 2, 2, 0),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0, 0, 0),
    ApiKey.UNREGISTER_BROKER: (0, 0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2, 2, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1, 1, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1, 1, 0),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0, 0, 0),
    ApiKey.PUSH_TELEMETRY: (0, 0, 0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1, 1, 0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0, 0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: (0, 1, 1, 0),
    ApiKey.SHARE_GROUP_DESCRIBE: (0, 1, 1, 0),
    ApiKey.SHARE_FETCH: (0, 2, 2, 0),
    ApiKey.SHARE_ACKNOWLEDGE: (0, 2, 2, 0),
    ApiKey.ADD_RAFT_VOTER: (0, 1, 1, 0),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0, 0, 0),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (0, 0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE: (0, 0, 0, 0),
    ApiKey.WRITE_SHARE_GROUP_STATE: (0, 1, 1, 0),
    ApiKey.DELETE_SHARE_GROUP_STATE: (0, 0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (0, 1, 1, 0),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (0, 1, 1, 0),
    ApiKey.STREAMS_GROUP_DESCRIBE: (0, 1, 1, 0),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1, 1, 0),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (0, 0, 0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (0, 0, 0, 0),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: (0, 0, 0, 0),
    ApiKey.UNREGISTER_CONTROLLER: (0, 0, 0, 0),
}

API_KEYS: tuple[int, ...] = tuple(_VERSIONS)
"""The keys of all APIs for clients."""

LATEST: dict[int, int] = {key: versions[2] for key, versions in _VERSIONS.items()}
"""API key -> the newest version that Kafka 4.4 does not call unstable."""

_NEVER = 1 << 15
"""A number above every version (versions are 16-bit numbers), for "no version"."""

FIRST_FLEXIBLE: dict[int, int] = {
    key: _NEVER if versions[3] is None else versions[3] for key, versions in _VERSIONS.items()
}
"""API key -> the first version with compact lengths and tagged fields, or `_NEVER`."""


# The class of each API key, once it was looked up. A broker looks up the class for each request,
# and finding it by the module's name costs 4 us.
_requests: dict[int, type[Any]] = {}
_responses: dict[int, type[Any]] = {}


def valid_versions(api_key: int) -> tuple[int, int]:
    """Return the (first, last) declared version, including versions that are unstable in Kafka.

    >>> valid_versions(ApiKey.FETCH)
    (0, 18)
    """
    return _row(api_key)[:2]


def stable_versions(api_key: int) -> tuple[int, int]:
    """Return the (first, last) version that is stable in Kafka 4.4.

    >>> stable_versions(ApiKey.INIT_PRODUCER_ID), valid_versions(ApiKey.INIT_PRODUCER_ID)
    ((0, 5), (0, 6))
    """
    return _row(api_key)[0], LATEST[api_key]


def request_class(api_key: int) -> type[Any]:
    """Return the request's class, for example `ProduceRequest`.

    Raises:
        UnknownApi: the API does not exist, or only brokers and controllers use it.
    """
    found = _requests.get(api_key)
    if found is None:
        found = _requests[api_key] = getattr(schema_module(api_key), NAMES[api_key] + "Request")
    return found


def response_class(api_key: int) -> type[Any]:
    """Return the response's class; raises as `request_class` does."""
    found = _responses.get(api_key)
    if found is None:
        found = _responses[api_key] = getattr(schema_module(api_key), NAMES[api_key] + "Response")
    return found


def schema_module(api_key: int) -> ModuleType:
    """Return the module of `wire.schemas` that declares the API's messages.

    >>> schema_module(ApiKey.LIST_OFFSETS).__name__
    'wire.schemas.list_offsets'
    """
    _row(api_key)
    name = module_name(api_key)
    package = __import__(f"wire.schemas.{name}").schemas
    module: ModuleType = getattr(package, name)
    return module


def module_name(api_key: int) -> str:
    """Return the API's name in the form of its file name, for example "list_offsets"."""
    letters = ["_" + c.lower() if c.isupper() else c for c in NAMES[api_key]]
    return "".join(letters)[1:]


def _row(api_key: int) -> tuple[int, int, int, int | None]:
    try:
        return _VERSIONS[api_key]
    except KeyError:
        # Imported only for the error: the first record of a process needs only this file's table.
        from wire.errors import UnknownApi

        raise UnknownApi(api_key) from None
