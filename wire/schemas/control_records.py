"""Keys and values of control records, and the bodies of Kafka's own metadata log control records.

A transaction marker is a ControlRecordTypeSchema key (version int16, type int16) with an
EndTxnMarker value; both begin with their version as an int16.
"""

from __future__ import annotations

from wire.schema import array, int16, int32, int64, message, string, struct, struct_, uint16, uuid


@message(kind="data", versions="0")
class ControlRecordTypeSchema:
    type: int = int16()


@message(kind="data", versions="0")
class EndTxnMarker:
    coordinator_epoch: int = int32()


@struct
class LeaderChangeVoter:
    voter_id: int = int32()
    voter_directory_id: bytes = uuid("1+")


@message(kind="data", versions="0-1", flexible="0+")
class LeaderChangeMessage:
    version: int = int16()
    leader_id: int = int32()
    voters: list[LeaderChangeVoter] = array(LeaderChangeVoter)
    granting_voters: list[LeaderChangeVoter] = array(LeaderChangeVoter)


@message(kind="data", versions="0", flexible="0+")
class SnapshotHeaderRecord:
    version: int = int16()
    last_contained_log_timestamp: int = int64()


@message(kind="data", versions="0", flexible="0+")
class SnapshotFooterRecord:
    version: int = int16()


@message(kind="data", versions="0", flexible="0+")
class KRaftVersionRecord:
    version: int = int16()
    k_raft_version: int = int16()


@struct
class Endpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@struct
class Voter:
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    endpoints: list[Endpoint] = array(Endpoint)
    k_raft_version_feature: KRaftVersionFeature = struct_(KRaftVersionFeature)


@message(kind="data", versions="0", flexible="0+")
class VotersRecord:
    version: int = int16()
    voters: list[Voter] = array(Voter)
