"""Results of admin calls: errors are not lost, and items can be found."""

from __future__ import annotations

import asyncio
import gc
import linecache
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog import AlterOperation, ConfigResource, NewTopic, ResourceType, errors
from embedlog.client.admin.results import ItemResults, handed_out

WRONG = NewTopic("wrong", 3, configs={"retentionms": 5})
TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.fixture(scope="module", autouse=True)
def _older_objects_are_not_searched() -> None:
    """Keep the objects of earlier tests out of the garbage collections here."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def admin() -> Iterator[Any]:
    with embedlog.open() as cluster, cluster.admin() as admin:
        cluster.create_topic("t")
        yield admin


def _warned(act: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    # At once, not at the next garbage collection.
    caught = list(caught)
    gc.collect()
    return caught


@pytest.mark.slow
def test_errors_that_nobody_looked_at_warn_when_dropped(admin: Any) -> None:
    (warning,) = _warned(lambda: admin.create_topics([WRONG, "fine"]))
    assert warning.category is RuntimeWarning
    text = str(warning.message)
    assert text.startswith(
        "create_topics: 1 of 2 failed, and nobody looked: 'wrong': InvalidConfig"
    )
    assert text.endswith("call check() on the result")
    assert warning.filename == __file__
    assert "create_topics" in linecache.getline(__file__, warning.lineno)


def test_the_warning_is_seen_without_asking_for_it() -> None:
    program = (
        "import embedlog\n"
        "with embedlog.open() as cluster:\n"
        "    cluster.admin().delete_topics(['nowhere'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "RuntimeWarning: delete_topics: 1 of 1 failed" in done.stderr
    assert "<string>:3" in done.stderr


def test_what_is_left_until_the_very_end_warns_too() -> None:
    program = "import embedlog; r = embedlog.open().admin().delete_topics(['nowhere'])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "RuntimeWarning: delete_topics: 1 of 1 failed" in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
def test_values_alone_are_not_a_look_at_the_errors(admin: Any) -> None:
    assert len(_warned(lambda: admin.create_topics([WRONG]).values)) == 1


def _iterate(results: Any) -> None:
    for _ in results:
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "look",
    [
        lambda results: results.errors,
        lambda results: pytest.raises(errors.InvalidConfig, results.check),
        lambda results: pytest.raises(errors.InvalidConfig, lambda: results["wrong"]),
        lambda results: results.get("wrong"),
        lambda results: results.items(),
        lambda results: results.keys(),
        lambda results: "wrong" in results,
        bool,
        len,
        list,
        repr,
        _iterate,
    ],
)
def test_whoever_looks_is_not_warned(admin: Any, look: Callable[[Any], object]) -> None:
    assert not _warned(lambda: look(admin.create_topics([WRONG])))


@pytest.mark.slow
def test_without_errors_there_is_nothing_to_warn_of(admin: Any) -> None:
    assert not _warned(lambda: admin.create_topics(["fine"]))
    assert not _warned(admin.list_groups)


def test_errors_inside_the_results_warn_as_well() -> None:
    inner: ItemResults[str, None] = ItemResults()
    inner.put("p", None, 3)
    outer: ItemResults[str, Any] = ItemResults()
    outer.put("g", inner, 0)
    (warning,) = _warned(lambda: handed_out(outer, "list_group_offsets"))
    assert str(warning.message).startswith("list_group_offsets: 1 of 1 failed")


def test_for_asyncio_errors_that_nobody_looked_at_warn_too() -> None:
    async def main(cluster: Any) -> None:
        async with embedlog.aio.Admin(cluster) as admin:
            await admin.create_topics([WRONG])

    with embedlog.open() as cluster:
        caught = _warned(lambda: asyncio.run(main(cluster)))
    assert [str(each.message).partition(":")[0] for each in caught] == ["create_topics"]


def test_a_cancelled_call_of_asyncio_warns_of_nothing() -> None:
    async def main(cluster: Any) -> None:
        async with embedlog.aio.Admin(cluster) as admin:
            waiting = asyncio.create_task(admin.describe_topics(["not-there"]))
            await asyncio.sleep(0)
            waiting.cancel()
            await admin.list_topics()
            assert waiting.cancelled()

    with embedlog.open() as cluster:
        assert not _warned(lambda: asyncio.run(main(cluster)))


def test_results_are_read_as_a_mapping_is(admin: Any) -> None:
    made = admin.create_topics(["fine", WRONG])
    assert made.keys() == list(made) == ["fine", "wrong"]
    assert made.get("fine") is made["fine"]
    assert made.get("wrong") is None
    assert made.get("other", 5) == 5
    (fine, value), (wrong, error) = made.items()
    assert (fine, wrong) == ("fine", "wrong")
    assert value is made["fine"]
    assert isinstance(error, errors.InvalidConfig)
    with pytest.raises(KeyError, match="create_topics was not asked about 0; there is 'fine', 'wr"):
        made[0]


@pytest.mark.parametrize("operation", ["SET", "set", 9, -1, None, 1.0, True])
def test_an_operation_that_does_not_exist_is_a_config_error(admin: Any, operation: Any) -> None:
    other = ConfigResource(ResourceType.TOPIC, "other")
    admin.create_topics(["other"]).check()
    changed = admin.incremental_alter_configs(
        {
            TOPIC: {"retention.ms": (operation, 1000)},
            other: {"retention.ms": (AlterOperation.SET, 1000)},
        }
    )
    with pytest.raises(errors.InvalidConfig, match=r"retention\.ms: .* AlterOperation\.SET"):
        changed[TOPIC]
    assert changed[other] is None
    assert admin.describe_configs([other])[other]["retention.ms"].value == "1000"


@pytest.mark.parametrize("change", ["SET", 5, ("SET",), (0, 1, 2), None])
def test_a_change_that_is_no_pair_is_refused(admin: Any, change: Any) -> None:
    with pytest.raises(TypeError, match=r"changes: retention\.ms=.*expected \(AlterOperation"):
        admin.incremental_alter_configs({TOPIC: {"retention.ms": change}})
