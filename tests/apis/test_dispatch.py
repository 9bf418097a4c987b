"""The dispatch table, and the errors that handlers raise."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import embedlog
from embedlog import errors
from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime
from wire import schemas
from wire.api_keys import NAMES, ApiKey
from wire.registry import module_name, response_class, valid_versions
from wire.schemas.describe_cluster import DescribeClusterRequest

APIS = Path(dispatch.__file__).parent / "apis"
EARLY_ACCESS = {76, 77, 78, 79}
"""APIs of share groups whose version 0 Kafka no longer has."""
SCHEMAS = Path(schemas.__file__ or "").parent


class Connection:
    """Records its closing."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def handler_module(api_key: int) -> ModuleType:
    return import_module(f"embedlog.broker.apis.{module_name(api_key)}")


def test_the_card_of_an_api_says_what_is_served() -> None:
    for api_key, (first, last) in dispatch.VERSIONS.items():
        known_first, known_last = valid_versions(api_key)
        removed = 1 if api_key in EARLY_ACCESS else 0
        assert known_first + removed == first <= last <= known_last, NAMES[api_key]
        versions = f"versions {first}-{last}" if first < last else f"version {first}"
        card = handler_module(api_key).__doc__ or ""
        assert card.startswith(f"{NAMES[api_key]} (api key {api_key}), {versions}: ")


def test_a_handler_is_typed_as_its_request_is() -> None:
    """The dispatcher looks handlers up by number, where the type checker cannot follow."""
    for api_key in dispatch.VERSIONS:
        handle = handler_module(api_key).handle
        request, response = f"{NAMES[api_key]}Request", f"{NAMES[api_key]}Response"
        schema = (SCHEMAS / f"{module_name(api_key)}.py").read_text()
        (answer,) = re.findall(
            rf'^class {request}\(\s*Request\["(.+)"\]\s*\):$', schema, re.MULTILINE
        )
        assert handle.__annotations__["request"] == request
        returned = set(handle.__annotations__["return"].split(" | "))
        assert returned - {f"Pending[{response}]"} == set(answer.split(" | ")), request
        assert answer == (f"{response} | None" if api_key == ApiKey.PRODUCE else response)


def test_every_api_has_room_for_an_error() -> None:
    for api_key in dispatch.VERSIONS:
        refuses = hasattr(handler_module(api_key), "refused")
        assert refuses or "error_code" in response_class(api_key).__slots__, NAMES[api_key]


def test_every_api_file_is_in_the_table() -> None:
    files = {path.stem for path in APIS.glob("*.py")} - {"__init__"}
    assert files == {module_name(api_key) for api_key in dispatch.VERSIONS}


@pytest.mark.parametrize(("allowed", "last"), [(False, 5), (True, 6)])
def test_unstable_versions_are_served_where_they_are_allowed(allowed: bool, last: int) -> None:
    with embedlog.open(unstable_api_versions_enable=str(allowed)) as cluster:
        assert dispatch.versions(cluster.config)[ApiKey.INIT_PRODUCER_ID] == (0, last)


class Failing:
    """Stands for the metadata: reading the brokers raises a defect."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property
    def brokers(self) -> Any:
        raise self._error


def answer_to(error: BaseException, *, in_process: bool) -> tuple[Any, Connection]:
    """Return the answer when the handler of DescribeCluster raises `error`."""
    connection = Connection()
    with Cluster(runtime=sim_runtime(seed=1)) as cluster:
        context = RequestContext(
            ApiKey.DESCRIBE_CLUSTER,
            1,
            client_id="c",
            connection=None if in_process else connection,
            in_process=in_process,
        )
        core = cluster.broker().core
        image = core.image
        core.image = Failing(error)  # type: ignore[assignment]
        try:
            return core.handle(context, DescribeClusterRequest()), connection
        finally:
            core.image = image


@pytest.mark.parametrize(
    "error, code",
    [
        (errors.NotController(), 41),
        (errors.StorageFailed("disk"), 56),
        (errors.CorruptRecord("file", 0, "crc"), 56),
        (errors.ClosedError("closed"), 56),
        (errors.ConfigError("bad"), 40),
    ],
)
def test_errors_become_codes(error: Exception, code: int) -> None:
    for in_process in (True, False):
        response, _ = answer_to(error, in_process=in_process)
        assert response.error_code == code


def test_a_defect_is_raised_in_process_and_answered_over_a_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ZeroDivisionError):
        answer_to(ZeroDivisionError("defect"), in_process=True)
    response, connection = answer_to(ZeroDivisionError("defect"), in_process=False)
    assert response.error_code == -1
    assert not connection.is_closed
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("embedlog.broker", "ERROR")
    assert record.getMessage() == "DescribeCluster version 1 of client 'c' at 127.0.0.1 failed"
    assert "ZeroDivisionError: defect" in caplog.text
