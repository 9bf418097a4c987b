"""`path_of`: the lists of each API that lead to its items, in the request and in the answer.

An *item* is a thing for which the answer has an error code of its own: a partition, a topic, a
group, a transactional id, a resource of a configuration.
"""

from __future__ import annotations

from typing import NamedTuple

from wire.api_keys import ApiKey

TOPIC = "topic"
PARTITION = "partition"
GROUP = "group"
TRANSACTION = "transaction"
COORDINATOR = "coordinator"
RESOURCE = "resource"
PRODUCER = "producer"
DIRECTORY = "directory"


class Level(NamedTuple):
    """One list on the way to the items."""

    kind: str
    request: str
    """Name of the list in the request, "" if only the answer has it."""
    response: str
    """Name of the list in the answer, "" if only the request has it."""


Path = tuple[Level, ...]


def _topics(request: str, response: str | None = None) -> Level:
    return Level(TOPIC, request, request if response is None else response)


def _partitions(request: str, response: str | None = None) -> Level:
    return Level(PARTITION, request, request if response is None else response)


_USUAL: Path = (_topics("topics"), _partitions("partitions"))
_BY_INDEX: Path = (_topics("topics"), _partitions("partition_indexes", "partitions"))
_SHOWN: Path = (_topics("topics"), _partitions("", "partitions"))
_RESOURCES: Path = (Level(RESOURCE, "resources", "responses"),)

_PATHS: dict[int, dict[int, Path]] = {
    ApiKey.PRODUCE: {
        0: (
            _topics("topic_data", "responses"),
            _partitions("partition_data", "partition_responses"),
        )
    },
    ApiKey.FETCH: {0: (_topics("topics", "responses"), _partitions("partitions"))},
    ApiKey.LIST_OFFSETS: {0: _USUAL},
    ApiKey.METADATA: {0: _SHOWN},
    ApiKey.OFFSET_COMMIT: {0: _USUAL},
    ApiKey.OFFSET_FETCH: {0: _BY_INDEX, 8: (Level(GROUP, "groups", "groups"), *_BY_INDEX)},
    ApiKey.FIND_COORDINATOR: {0: (), 4: (Level(COORDINATOR, "coordinator_keys", "coordinators"),)},
    ApiKey.DESCRIBE_GROUPS: {0: (Level(GROUP, "groups", "groups"),)},
    ApiKey.CREATE_TOPICS: {0: (_topics("topics"),)},
    ApiKey.DELETE_TOPICS: {
        0: (_topics("topic_names", "responses"),),
        6: (_topics("topics", "responses"),),
    },
    ApiKey.DELETE_RECORDS: {0: _USUAL},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {0: _USUAL},
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        0: (
            _topics("v3_and_below_topics", "results_by_topic_v3_and_below"),
            _partitions("partitions", "results_by_partition"),
        ),
        4: (
            Level(TRANSACTION, "transactions", "results_by_transaction"),
            _topics("topics", "topic_results"),
            _partitions("partitions", "results_by_partition"),
        ),
    },
    ApiKey.WRITE_TXN_MARKERS: {0: (Level(PRODUCER, "markers", "markers"), *_BY_INDEX)},
    ApiKey.TXN_OFFSET_COMMIT: {0: _USUAL},
    ApiKey.DESCRIBE_CONFIGS: {0: (Level(RESOURCE, "resources", "results"),)},
    ApiKey.ALTER_CONFIGS: {0: _RESOURCES},
    ApiKey.ALTER_REPLICA_LOG_DIRS: {
        0: (Level(DIRECTORY, "dirs", ""), _topics("topics", "results"), _partitions("partitions"))
    },
    ApiKey.CREATE_PARTITIONS: {0: (_topics("topics", "results"),)},
    ApiKey.DELETE_GROUPS: {0: (Level(GROUP, "groups_names", "results"),)},
    ApiKey.ELECT_LEADERS: {
        0: (
            _topics("topic_partitions", "replica_election_results"),
            _partitions("partitions", "partition_result"),
        )
    },
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {0: _RESOURCES},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {
        0: (_topics("topics", "responses"), _partitions("partitions"))
    },
    ApiKey.OFFSET_DELETE: {0: _USUAL},
    ApiKey.DESCRIBE_PRODUCERS: {0: _BY_INDEX},
    ApiKey.DESCRIBE_TRANSACTIONS: {
        0: (Level(TRANSACTION, "transactional_ids", "transaction_states"),)
    },
    ApiKey.CONSUMER_GROUP_DESCRIBE: {0: (Level(GROUP, "group_ids", "groups"),)},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {0: _SHOWN},
}
"""API key -> first version -> path. Other APIs have one error code for the whole request."""


def path_of(api_key: int, version: int) -> Path:
    """Return the lists that lead to the items of an API; empty if it has none."""
    found: Path = ()
    for first, path in _PATHS.get(api_key, {}).items():
        if version >= first:
            found = path
    return found


def kinds_of(api_key: int) -> frozenset[str]:
    """Return the kinds of the levels of an API, in any version."""
    return frozenset(level.kind for path in _PATHS.get(api_key, {}).values() for level in path)
