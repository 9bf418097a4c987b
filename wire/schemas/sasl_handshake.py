"""SaslHandshake (API key 17), versions 0-1: choose the SASL mechanism.

The SASL messages follow as bare frames after v0, and inside SaslAuthenticate after v1. The API is
never flexible.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int16, message, string


@message(api=ApiKey.SASL_HANDSHAKE, kind="request", versions="0-1")
class SaslHandshakeRequest(Request["SaslHandshakeResponse"]):
    mechanism: str = string()


@message(api=ApiKey.SASL_HANDSHAKE, kind="response", versions="0-1")
class SaslHandshakeResponse:
    error_code: int = int16()
    mechanisms: list[str] = array(string)
