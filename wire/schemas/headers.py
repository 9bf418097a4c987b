"""Request and response headers as declarations.

`wire.headers` knows the header version of each API version, and encodes and decodes headers faster.

Request v0 lacks the client id. Request v2 and response v1 are flexible. The client id keeps its
int16 length, because a broker must be able to read it in requests newer than itself.
"""

from __future__ import annotations

from wire.schema import int16, int32, message, string


@message(kind="header", versions="0-2", flexible="2+")
class RequestHeader:
    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string("1+", nullable="1+", old_form=True)


@message(kind="header", versions="0-1", flexible="1+")
class ResponseHeader:
    correlation_id: int = int32()
