"""RemoveRaftVoter (API key 81), version 0, flexible: remove a voter from the metadata quorum."""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, int16, int32, message, string, uuid


@message(api=ApiKey.REMOVE_RAFT_VOTER, kind="request", versions="0", flexible="0+")
class RemoveRaftVoterRequest(Request["RemoveRaftVoterResponse"]):
    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


@message(api=ApiKey.REMOVE_RAFT_VOTER, kind="response", versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
