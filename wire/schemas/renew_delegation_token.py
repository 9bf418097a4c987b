"""RenewDelegationToken (API key 39), versions 0-2, flexible from 2: extend the lifetime of
a delegation token.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, bytes_, int16, int32, int64, message


@message(api=ApiKey.RENEW_DELEGATION_TOKEN, kind="request", versions="0-2", flexible="2+")
class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"]):
    hmac: bytes = bytes_()
    renew_period_ms: int = int64()


@message(api=ApiKey.RENEW_DELEGATION_TOKEN, kind="response", versions="0-2", flexible="2+")
class RenewDelegationTokenResponse:
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
