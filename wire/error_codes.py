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


ERRORS: tuple[tuple[int, str, bool, str], ...] = (
    (-1, "UNKNOWN_SERVER_ERROR", False, "unexpected failure inside the broker"),
    (0, "NONE", False, "success"),
    (
        1,
        "OFFSET_OUT_OF_RANGE",
        False,
        "fetch/delete offset outside [log start, high watermark or end]",
    ),
    (
        2,
        "CORRUPT_MESSAGE",
        True,
        "CRC or size corruption, or (older) null key on a compacted topic",
    ),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", True, "topic or partition not hosted/known"),
    (4, "INVALID_FETCH_SIZE", False, "bad fetch size"),
    (5, "LEADER_NOT_AVAILABLE", True, "no leader right now"),
    (
        6,
        "NOT_LEADER_OR_FOLLOWER",
        True,
        "broker is not leader (or not a replica, for follower reads)",
    ),
    (7, "REQUEST_TIMED_OUT", True, "operation exceeded its timeout"),
    (8, "BROKER_NOT_AVAILABLE", False, "broker unreachable (admin, legacy)"),
    (9, "REPLICA_NOT_AVAILABLE", True, "replica missing"),
    (10, "MESSAGE_TOO_LARGE", False, "batch larger than the limit"),
    (11, "STALE_CONTROLLER_EPOCH", False, "controller epoch outdated"),
    (12, "OFFSET_METADATA_TOO_LARGE", False, "commit metadata string too long"),
    (13, "NETWORK_EXCEPTION", True, "connection lost (synthetic, client side)"),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", True, "coordinator still loading its partition"),
    (15, "COORDINATOR_NOT_AVAILABLE", True, "coordinator unavailable"),
    (16, "NOT_COORDINATOR", True, "wrong coordinator"),
    (17, "INVALID_TOPIC_EXCEPTION", False, "illegal or internal topic"),
    (18, "RECORD_LIST_TOO_LARGE", False, "append larger than a segment"),
    (19, "NOT_ENOUGH_REPLICAS", True, "ISR below minimum before append"),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, "appended, but ISR fell below minimum"),
    (21, "INVALID_REQUIRED_ACKS", False, "acks value not −1/0/1"),
    (22, "ILLEGAL_GENERATION", False, "generation id mismatch"),
    (23, "INCONSISTENT_GROUP_PROTOCOL", False, "no common protocol / type mismatch"),
    (24, "INVALID_GROUP_ID", False, "empty or illegal group id"),
    (25, "UNKNOWN_MEMBER_ID", False, "member unknown to the group"),
    (26, "INVALID_SESSION_TIMEOUT", False, "session timeout out of broker bounds"),
    (27, "REBALANCE_IN_PROGRESS", False, "rebalance running; re-join"),
    (28, "INVALID_COMMIT_OFFSET_SIZE", False, "offset commit too large to store (≤3.x)"),
    (29, "TOPIC_AUTHORIZATION_FAILED", False, "no permission on topic"),
    (30, "GROUP_AUTHORIZATION_FAILED", False, "no permission on group"),
    (31, "CLUSTER_AUTHORIZATION_FAILED", False, "no permission on cluster"),
    (32, "INVALID_TIMESTAMP", False, "record timestamp out of range / type not allowed"),
    (33, "UNSUPPORTED_SASL_MECHANISM", False, "SASL mechanism not enabled"),
    (34, "ILLEGAL_SASL_STATE", False, "request illegal in the current SASL state"),
    (35, "UNSUPPORTED_VERSION", False, "version not supported"),
    (36, "TOPIC_ALREADY_EXISTS", False, "topic exists"),
    (37, "INVALID_PARTITIONS", False, "partition count invalid"),
    (38, "INVALID_REPLICATION_FACTOR", False, "replication factor invalid"),
    (39, "INVALID_REPLICA_ASSIGNMENT", False, "manual assignment invalid"),
    (40, "INVALID_CONFIG", False, "configuration value invalid"),
    (41, "NOT_CONTROLLER", True, "not the controller"),
    (42, "INVALID_REQUEST", False, "malformed or contradictory request"),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", False, "topic's stored format too old for the feature"),
    (44, "POLICY_VIOLATION", False, "rejected by a policy"),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, "producer sequence gap"),
    (46, "DUPLICATE_SEQUENCE_NUMBER", False, "duplicate sequence outside the cache"),
    (47, "INVALID_PRODUCER_EPOCH", False, "producer epoch too old"),
    (48, "INVALID_TXN_STATE", False, "transactional call in the wrong state"),
    (49, "INVALID_PRODUCER_ID_MAPPING", False, "producer id does not match transactional id"),
    (50, "INVALID_TRANSACTION_TIMEOUT", False, "transaction timeout above the broker max"),
    (
        51,
        "CONCURRENT_TRANSACTIONS",
        True,
        "another transition on this transactional id in progress",
    ),
    (
        52,
        "TRANSACTION_COORDINATOR_FENCED",
        False,
        "marker from an outdated transaction coordinator",
    ),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "no permission on transactional id"),
    (54, "SECURITY_DISABLED", False, "security feature not configured"),
    (55, "OPERATION_NOT_ATTEMPTED", False, "not tried because a sibling in the batch failed"),
    (56, "KAFKA_STORAGE_ERROR", True, "disk failure on the log dir"),
    (57, "LOG_DIR_NOT_FOUND", False, "log dir not configured"),
    (58, "SASL_AUTHENTICATION_FAILED", False, "SASL authentication failed"),
    (59, "UNKNOWN_PRODUCER_ID", False, "no producer state (no longer raised since 2.5)"),
    (60, "REASSIGNMENT_IN_PROGRESS", False, "reassignment already running"),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", False, "delegation tokens disabled"),
    (62, "DELEGATION_TOKEN_NOT_FOUND", False, "token unknown"),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", False, "principal is neither owner nor renewer"),
    (
        64,
        "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        False,
        "token request not allowed on this channel",
    ),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", False, "no permission on token"),
    (66, "DELEGATION_TOKEN_EXPIRED", False, "token expired"),
    (67, "INVALID_PRINCIPAL_TYPE", False, "principal type not supported"),
    (68, "NON_EMPTY_GROUP", False, "group has members"),
    (69, "GROUP_ID_NOT_FOUND", False, "group unknown"),
    (70, "FETCH_SESSION_ID_NOT_FOUND", True, "fetch session unknown"),
    (71, "INVALID_FETCH_SESSION_EPOCH", True, "fetch session epoch wrong"),
    (72, "LISTENER_NOT_FOUND", True, "leader has no endpoint on this listener"),
    (73, "TOPIC_DELETION_DISABLED", False, "topic deletion disabled"),
    (74, "FENCED_LEADER_EPOCH", True, "request's leader epoch older than broker's"),
    (75, "UNKNOWN_LEADER_EPOCH", True, "request's leader epoch newer than broker's"),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", False, "codec not allowed for this version"),
    (77, "STALE_BROKER_EPOCH", False, "broker epoch outdated"),
    (78, "OFFSET_NOT_AVAILABLE", True, "offsets not yet safe after election"),
    (79, "MEMBER_ID_REQUIRED", False, "join again with the returned member id"),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", True, "preferred leader cannot take over"),
    (81, "GROUP_MAX_SIZE_REACHED", False, "group is full"),
    (82, "FENCED_INSTANCE_ID", False, "static instance replaced by another member"),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", True, "no eligible leader online"),
    (84, "ELECTION_NOT_NEEDED", True, "leader already as wanted"),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", False, "no reassignment to cancel"),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", False, "members are subscribed to that topic"),
    (87, "INVALID_RECORD", False, "record failed validation"),
    (88, "UNSTABLE_OFFSET_COMMIT", True, "open transactional offsets, retry"),
    (89, "THROTTLING_QUOTA_EXCEEDED", True, "controller mutation quota exceeded"),
    (90, "PRODUCER_FENCED", False, "newer producer with same transactional id"),
    (91, "RESOURCE_NOT_FOUND", False, "referenced resource missing"),
    (92, "DUPLICATE_RESOURCE", False, "resource named twice"),
    (93, "UNACCEPTABLE_CREDENTIAL", False, "SCRAM credential unacceptable"),
    (94, "INCONSISTENT_VOTER_SET", False, "voter set mismatch"),
    (95, "INVALID_UPDATE_VERSION", False, "partition/feature version conflict"),
    (96, "FEATURE_UPDATE_FAILED", False, "feature update failed"),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", False, "forwarded principal unreadable"),
    (98, "SNAPSHOT_NOT_FOUND", False, "metadata snapshot missing"),
    (99, "POSITION_OUT_OF_RANGE", False, "snapshot position invalid"),
    (100, "UNKNOWN_TOPIC_ID", True, "topic id unknown"),
    (101, "DUPLICATE_BROKER_REGISTRATION", False, "broker id registered already"),
    (102, "BROKER_ID_NOT_REGISTERED", False, "broker id not registered"),
    (103, "INCONSISTENT_TOPIC_ID", True, "topic id differs from the log's"),
    (104, "INCONSISTENT_CLUSTER_ID", False, "cluster id differs"),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", False, "transactional id unknown"),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", True, "session mixes names and ids"),
    (107, "INELIGIBLE_REPLICA", False, "replica not eligible for the ISR"),
    (108, "NEW_LEADER_ELECTED", False, "ISR updated but leader changed"),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", False, "offset lives in tiered storage"),
    (110, "FENCED_MEMBER_EPOCH", False, "member epoch fenced: drop partitions and re-join"),
    (111, "UNRELEASED_INSTANCE_ID", False, "instance id still in use"),
    (112, "UNSUPPORTED_ASSIGNOR", False, "server assignor unknown"),
    (113, "STALE_MEMBER_EPOCH", False, "member epoch stale: retry after next heartbeat"),
    (114, "MISMATCHED_ENDPOINT_TYPE", False, "broker/controller endpoint mismatch"),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", False, "endpoint type not supported"),
    (116, "UNKNOWN_CONTROLLER_ID", False, "controller id unknown"),
    (117, "UNKNOWN_SUBSCRIPTION_ID", False, "telemetry subscription id unknown"),
    (118, "TELEMETRY_TOO_LARGE", False, "telemetry payload too large"),
    (119, "INVALID_REGISTRATION", False, "broker registration rejected"),
    (120, "TRANSACTION_ABORTABLE", False, "abort the transaction, producer stays usable"),
    (121, "INVALID_RECORD_STATE", False, "share record not in acquired state"),
    (122, "SHARE_SESSION_NOT_FOUND", True, "share session unknown"),
    (123, "INVALID_SHARE_SESSION_EPOCH", True, "share session epoch wrong"),
    (124, "FENCED_STATE_EPOCH", False, "share state epoch fenced"),
    (125, "INVALID_VOTER_KEY", False, "voter key mismatch"),
    (126, "DUPLICATE_VOTER", False, "voter already present"),
    (127, "VOTER_NOT_FOUND", False, "voter unknown"),
    (128, "INVALID_REGULAR_EXPRESSION", False, "regular expression invalid"),
    (129, "REBOOTSTRAP_REQUIRED", False, "client must bootstrap anew (KIP-1102)"),
    (130, "STREAMS_INVALID_TOPOLOGY", False, "streams topology invalid"),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", False, "streams topology epoch invalid"),
    (132, "STREAMS_TOPOLOGY_FENCED", False, "streams topology epoch outdated"),
    (133, "SHARE_SESSION_LIMIT_REACHED", True, "too many share sessions"),
    (134, "GROUP_DELETION_FAILED", False, "group deletion failed"),
    (
        135,
        "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED",
        False,
        "topology description update failed",
    ),
    (136, "CONTROLLER_ID_NOT_REGISTERED", False, "controller id not registered"),
)
"""(code, name, retriable, meaning), ascending by code."""

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

STALE_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Codes after which a client looks up its coordinator before a retry."""
