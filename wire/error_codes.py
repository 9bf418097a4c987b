"""Kafka's error codes: one table, one int namespace.

A code is an int16 in a response; 0 is success. After a retriable error Kafka's clients may send the
same request again. After the errors in `STALE_METADATA` a client first refreshes its metadata;
after the errors in `STALE_COORDINATOR` it first looks up its coordinator.
"""


class ErrorCode:
    """The error codes as ints, with Kafka's names of the errors."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136


_ROWS = (
    ("UNKNOWN_SERVER_ERROR", False, "unexpected failure inside the broker"),
    ("NONE", False, "success"),
    (
        "OFFSET_OUT_OF_RANGE",
        False,
        "fetch/delete offset outside [log start, high watermark or end]",
    ),
    ("CORRUPT_MESSAGE", True, "CRC or size corruption, or (older) null key on a compacted topic"),
    ("UNKNOWN_TOPIC_OR_PARTITION", True, "topic or partition not hosted/known"),
    ("INVALID_FETCH_SIZE", False, "bad fetch size"),
    ("LEADER_NOT_AVAILABLE", True, "no leader right now"),
    ("NOT_LEADER_OR_FOLLOWER", True, "broker is not leader (or not a replica, for follower reads)"),
    ("REQUEST_TIMED_OUT", True, "operation exceeded its timeout"),
    ("BROKER_NOT_AVAILABLE", False, "broker unreachable (admin, legacy)"),
    ("REPLICA_NOT_AVAILABLE", True, "replica missing"),
    ("MESSAGE_TOO_LARGE", False, "batch larger than the limit"),
    ("STALE_CONTROLLER_EPOCH", False, "controller epoch outdated"),
    ("OFFSET_METADATA_TOO_LARGE", False, "commit metadata string too long"),
    ("NETWORK_EXCEPTION", True, "connection lost (synthetic, client side)"),
    ("COORDINATOR_LOAD_IN_PROGRESS", True, "coordinator still loading its partition"),
    ("COORDINATOR_NOT_AVAILABLE", True, "coordinator unavailable"),
    ("NOT_COORDINATOR", True, "wrong coordinator"),
    ("INVALID_TOPIC_EXCEPTION", False, "illegal or internal topic"),
    ("RECORD_LIST_TOO_LARGE", False, "append larger than a segment"),
    ("NOT_ENOUGH_REPLICAS", True, "ISR below minimum before append"),
    ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, "appended, but ISR fell below minimum"),
    ("INVALID_REQUIRED_ACKS", False, "acks value not −1/0/1"),
    ("ILLEGAL_GENERATION", False, "generation id mismatch"),
    ("INCONSISTENT_GROUP_PROTOCOL", False, "no common protocol / type mismatch"),
    ("INVALID_GROUP_ID", False, "empty or illegal group id"),
    ("UNKNOWN_MEMBER_ID", False, "member unknown to the group"),
    ("INVALID_SESSION_TIMEOUT", False, "session timeout out of broker bounds"),
    ("REBALANCE_IN_PROGRESS", False, "rebalance running; re-join"),
    ("INVALID_COMMIT_OFFSET_SIZE", False, "offset commit too large to store (≤3.x)"),
    ("TOPIC_AUTHORIZATION_FAILED", False, "no permission on topic"),
    ("GROUP_AUTHORIZATION_FAILED", False, "no permission on group"),
    ("CLUSTER_AUTHORIZATION_FAILED", False, "no permission on cluster"),
    ("INVALID_TIMESTAMP", False, "record timestamp out of range / type not allowed"),
    ("UNSUPPORTED_SASL_MECHANISM", False, "SASL mechanism not enabled"),
    ("ILLEGAL_SASL_STATE", False, "request illegal in the current SASL state"),
    ("UNSUPPORTED_VERSION", False, "version not supported"),
    ("TOPIC_ALREADY_EXISTS", False, "topic exists"),
    ("INVALID_PARTITIONS", False, "partition count invalid"),
    ("INVALID_REPLICATION_FACTOR", False, "replication factor invalid"),
    ("INVALID_REPLICA_ASSIGNMENT", False, "manual assignment invalid"),
    ("INVALID_CONFIG", False, "configuration value invalid"),
    ("NOT_CONTROLLER", True, "not the controller"),
    ("INVALID_REQUEST", False, "malformed or contradictory request"),
    ("UNSUPPORTED_FOR_MESSAGE_FORMAT", False, "topic's stored format too old for the feature"),
    ("POLICY_VIOLATION", False, "rejected by a policy"),
    ("OUT_OF_ORDER_SEQUENCE_NUMBER", False, "producer sequence gap"),
    ("DUPLICATE_SEQUENCE_NUMBER", False, "duplicate sequence outside the cache"),
    ("INVALID_PRODUCER_EPOCH", False, "producer epoch too old"),
    ("INVALID_TXN_STATE", False, "transactional call in the wrong state"),
    ("INVALID_PRODUCER_ID_MAPPING", False, "producer id does not match transactional id"),
    ("INVALID_TRANSACTION_TIMEOUT", False, "transaction timeout above the broker max"),
    ("CONCURRENT_TRANSACTIONS", True, "another transition on this transactional id in progress"),
    ("TRANSACTION_COORDINATOR_FENCED", False, "marker from an outdated transaction coordinator"),
    ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "no permission on transactional id"),
    ("SECURITY_DISABLED", False, "security feature not configured"),
    ("OPERATION_NOT_ATTEMPTED", False, "not tried because a sibling in the batch failed"),
    ("KAFKA_STORAGE_ERROR", True, "disk failure on the log dir"),
    ("LOG_DIR_NOT_FOUND", False, "log dir not configured"),
    ("SASL_AUTHENTICATION_FAILED", False, "SASL authentication failed"),
    ("UNKNOWN_PRODUCER_ID", False, "no producer state (no longer raised since 2.5)"),
    ("REASSIGNMENT_IN_PROGRESS", False, "reassignment already running"),
    ("DELEGATION_TOKEN_AUTH_DISABLED", False, "delegation tokens disabled"),
    ("DELEGATION_TOKEN_NOT_FOUND", False, "token unknown"),
    ("DELEGATION_TOKEN_OWNER_MISMATCH", False, "principal is neither owner nor renewer"),
    ("DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", False, "token request not allowed on this channel"),
    ("DELEGATION_TOKEN_AUTHORIZATION_FAILED", False, "no permission on token"),
    ("DELEGATION_TOKEN_EXPIRED", False, "token expired"),
    ("INVALID_PRINCIPAL_TYPE", False, "principal type not supported"),
    ("NON_EMPTY_GROUP", False, "group has members"),
    ("GROUP_ID_NOT_FOUND", False, "group unknown"),
    ("FETCH_SESSION_ID_NOT_FOUND", True, "fetch session unknown"),
    ("INVALID_FETCH_SESSION_EPOCH", True, "fetch session epoch wrong"),
    ("LISTENER_NOT_FOUND", True, "leader has no endpoint on this listener"),
    ("TOPIC_DELETION_DISABLED", False, "topic deletion disabled"),
    ("FENCED_LEADER_EPOCH", True, "request's leader epoch older than broker's"),
    ("UNKNOWN_LEADER_EPOCH", True, "request's leader epoch newer than broker's"),
    ("UNSUPPORTED_COMPRESSION_TYPE", False, "codec not allowed for this version"),
    ("STALE_BROKER_EPOCH", False, "broker epoch outdated"),
    ("OFFSET_NOT_AVAILABLE", True, "offsets not yet safe after election"),
    ("MEMBER_ID_REQUIRED", False, "join again with the returned member id"),
    ("PREFERRED_LEADER_NOT_AVAILABLE", True, "preferred leader cannot take over"),
    ("GROUP_MAX_SIZE_REACHED", False, "group is full"),
    ("FENCED_INSTANCE_ID", False, "static instance replaced by another member"),
    ("ELIGIBLE_LEADERS_NOT_AVAILABLE", True, "no eligible leader online"),
    ("ELECTION_NOT_NEEDED", True, "leader already as wanted"),
    ("NO_REASSIGNMENT_IN_PROGRESS", False, "no reassignment to cancel"),
    ("GROUP_SUBSCRIBED_TO_TOPIC", False, "members are subscribed to that topic"),
    ("INVALID_RECORD", False, "record failed validation"),
    ("UNSTABLE_OFFSET_COMMIT", True, "open transactional offsets, retry"),
    ("THROTTLING_QUOTA_EXCEEDED", True, "controller mutation quota exceeded"),
    ("PRODUCER_FENCED", False, "newer producer with same transactional id"),
    ("RESOURCE_NOT_FOUND", False, "referenced resource missing"),
    ("DUPLICATE_RESOURCE", False, "resource named twice"),
    ("UNACCEPTABLE_CREDENTIAL", False, "SCRAM credential unacceptable"),
    ("INCONSISTENT_VOTER_SET", False, "voter set mismatch"),
    ("INVALID_UPDATE_VERSION", False, "partition/feature version conflict"),
    ("FEATURE_UPDATE_FAILED", False, "feature update failed"),
    ("PRINCIPAL_DESERIALIZATION_FAILURE", False, "forwarded principal unreadable"),
    ("SNAPSHOT_NOT_FOUND", False, "metadata snapshot missing"),
    ("POSITION_OUT_OF_RANGE", False, "snapshot position invalid"),
    ("UNKNOWN_TOPIC_ID", True, "topic id unknown"),
    ("DUPLICATE_BROKER_REGISTRATION", False, "broker id registered already"),
    ("BROKER_ID_NOT_REGISTERED", False, "broker id not registered"),
    ("INCONSISTENT_TOPIC_ID", True, "topic id differs from the log's"),
    ("INCONSISTENT_CLUSTER_ID", False, "cluster id differs"),
    ("TRANSACTIONAL_ID_NOT_FOUND", False, "transactional id unknown"),
    ("FETCH_SESSION_TOPIC_ID_ERROR", True, "session mixes names and ids"),
    ("INELIGIBLE_REPLICA", False, "replica not eligible for the ISR"),
    ("NEW_LEADER_ELECTED", False, "ISR updated but leader changed"),
    ("OFFSET_MOVED_TO_TIERED_STORAGE", False, "offset lives in tiered storage"),
    ("FENCED_MEMBER_EPOCH", False, "member epoch fenced: drop partitions and re-join"),
    ("UNRELEASED_INSTANCE_ID", False, "instance id still in use"),
    ("UNSUPPORTED_ASSIGNOR", False, "server assignor unknown"),
    ("STALE_MEMBER_EPOCH", False, "member epoch stale: retry after next heartbeat"),
    ("MISMATCHED_ENDPOINT_TYPE", False, "broker/controller endpoint mismatch"),
    ("UNSUPPORTED_ENDPOINT_TYPE", False, "endpoint type not supported"),
    ("UNKNOWN_CONTROLLER_ID", False, "controller id unknown"),
    ("UNKNOWN_SUBSCRIPTION_ID", False, "telemetry subscription id unknown"),
    ("TELEMETRY_TOO_LARGE", False, "telemetry payload too large"),
    ("INVALID_REGISTRATION", False, "broker registration rejected"),
    ("TRANSACTION_ABORTABLE", False, "abort the transaction, producer stays usable"),
    ("INVALID_RECORD_STATE", False, "share record not in acquired state"),
    ("SHARE_SESSION_NOT_FOUND", True, "share session unknown"),
    ("INVALID_SHARE_SESSION_EPOCH", True, "share session epoch wrong"),
    ("FENCED_STATE_EPOCH", False, "share state epoch fenced"),
    ("INVALID_VOTER_KEY", False, "voter key mismatch"),
    ("DUPLICATE_VOTER", False, "voter already present"),
    ("VOTER_NOT_FOUND", False, "voter unknown"),
    ("INVALID_REGULAR_EXPRESSION", False, "regular expression invalid"),
    ("REBOOTSTRAP_REQUIRED", False, "client must bootstrap anew (KIP-1102)"),
    ("STREAMS_INVALID_TOPOLOGY", False, "streams topology invalid"),
    ("STREAMS_INVALID_TOPOLOGY_EPOCH", False, "streams topology epoch invalid"),
    ("STREAMS_TOPOLOGY_FENCED", False, "streams topology epoch outdated"),
    ("SHARE_SESSION_LIMIT_REACHED", True, "too many share sessions"),
    ("GROUP_DELETION_FAILED", False, "group deletion failed"),
    ("STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", False, "topology description update failed"),
    ("CONTROLLER_ID_NOT_REGISTERED", False, "controller id not registered"),
)

ERRORS: dict[int, tuple[str, bool, str]] = {getattr(ErrorCode, row[0]): row for row in _ROWS}
"""Code -> (name, retriable, meaning), ascending by code."""

STALE_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Codes after which a client refreshes its metadata before a retry."""

STALE_COORDINATOR = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Codes after which a client looks up its coordinator before a retry."""
