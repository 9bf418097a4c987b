"""InitProducerId: ids for idempotent producers. Transactional ids are in tests/coordinator."""

from __future__ import annotations

import pytest

from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from tests.apis.conftest import Client, InProcess
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def ask(client: Client, version: int = 5, **fields: object) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        **{"transactional_id": None, "transaction_timeout_ms": 1000, **fields}
    )
    response: InitProducerIdResponse = client.call(request, version)
    return response


@pytest.mark.parametrize("version", range(6))
def test_ids_are_fresh_and_begin_at_epoch_0(client: Client, version: int) -> None:
    answers = [ask(client, version, transaction_timeout_ms=-1) for _ in range(3)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert {answer.producer_epoch for answer in answers} == {0}
    assert len({answer.producer_id for answer in answers}) == 3
    assert min(answer.producer_id for answer in answers) >= 0


def test_more_ids_than_a_block_has(client: Client) -> None:
    ids = {client.broker.producer_ids.next() for _ in range(2500)}
    assert len(ids) == 2500


def test_an_id_and_epoch_without_transactions_get_a_new_id(client: Client) -> None:
    answer = ask(client, producer_id=7, producer_epoch=3)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"producer_id": 7}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 0}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 0},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 900_001},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
        ({"transactional_id": "t"}, ErrorCode.NOT_COORDINATOR),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 900_000},
            ErrorCode.NOT_COORDINATOR,
        ),
    ],
)
def test_refusals(client: Client, fields: dict[str, object], code: int) -> None:
    answer = ask(client, **fields)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


def test_no_id_is_given_twice_over_restarts() -> None:
    ids: list[int] = []
    runtime = sim_runtime(seed=3)
    for _ in range(3):
        with Cluster("/data", runtime=runtime) as cluster:
            ids += [ask(InProcess(cluster)).producer_id for _ in range(5)]
        runtime = sim_runtime(seed=3, files=runtime.files)
    assert len(set(ids)) == len(ids)


def test_two_phase_commits_need_a_setting() -> None:
    settings = {"unstable.api.versions.enable": "true"}
    for allowed, code in (
        ("false", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("true", ErrorCode.NOT_COORDINATOR),
    ):
        config = {**settings, "transaction.two.phase.commit.enable": allowed}
        with Cluster(None, config, runtime=sim_runtime()) as cluster:
            request = InitProducerIdRequest(
                transactional_id="t", transaction_timeout_ms=1000, enable2_pc=True
            )
            context = RequestContext(ApiKey.INIT_PRODUCER_ID, 6)
            answer = cluster.broker().core.handle(context, request)
            if isinstance(answer, Pending):
                answer = answer.result()
            assert answer.error_code == code
