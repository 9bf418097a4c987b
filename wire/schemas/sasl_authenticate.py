"""SaslAuthenticate (API key 36), versions 0-2, flexible from 2: one step of a SASL exchange.

v1 lifetime of the session.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, bytes_, int16, int64, message, string


@message(api=ApiKey.SASL_AUTHENTICATE, kind="request", versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"]):
    auth_bytes: bytes = bytes_()


@message(api=ApiKey.SASL_AUTHENTICATE, kind="response", versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytes_()
    session_lifetime_ms: int = int64("1+", ignorable=True)
