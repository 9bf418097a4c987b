"""CreateDelegationToken (API key 38), versions 0-3, flexible from 2: create a delegation token.

v3 the token may be for another user.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, bytes_, int16, int32, int64, message, string, struct


@struct
class CreatableRenewers:
    principal_type: str = string()
    principal_name: str = string()


@message(api=ApiKey.CREATE_DELEGATION_TOKEN, kind="request", versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"]):
    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


@message(api=ApiKey.CREATE_DELEGATION_TOKEN, kind="response", versions="0-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_()
    throttle_time_ms: int = int32()
