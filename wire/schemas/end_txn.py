"""EndTxn (API key 26), versions 0-5, flexible from 3: commit or abort a transaction.

v2 may answer PRODUCER_FENCED. v4 may answer TRANSACTION_ABORTABLE. v5 the producer id and
epoch for the next transaction (KIP-890).
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, boolean, int16, int32, int64, message, string


@message(api=ApiKey.END_TXN, kind="request", versions="0-5", flexible="3+")
class EndTxnRequest(Request["EndTxnResponse"]):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message(api=ApiKey.END_TXN, kind="response", versions="0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
