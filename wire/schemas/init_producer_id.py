"""InitProducerId (API key 22), versions 0-6, flexible from 2: a producer id and epoch, for
idempotence and transactions.

v3 the producer's present id and epoch, to bump that epoch. v4 may answer PRODUCER_FENCED. v5 may
answer TRANSACTION_ABORTABLE. v6 two-phase commit (KIP-939, unstable).
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, boolean, int16, int32, int64, message, string


@message(api=ApiKey.INIT_PRODUCER_ID, kind="request", versions="0-6", flexible="2+")
class InitProducerIdRequest(Request["InitProducerIdResponse"]):
    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


@message(api=ApiKey.INIT_PRODUCER_ID, kind="response", versions="0-6", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
