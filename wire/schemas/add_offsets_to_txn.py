"""AddOffsetsToTxn (API key 25), versions 0-4, flexible from 3: make the offsets of a group part of
a transaction.

v2 may answer PRODUCER_FENCED. v4 may answer TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, int16, int32, int64, message, string


@message(api=ApiKey.ADD_OFFSETS_TO_TXN, kind="request", versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"]):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(api=ApiKey.ADD_OFFSETS_TO_TXN, kind="response", versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
