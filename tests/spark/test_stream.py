"""A streaming read: batches follow each other without a gap, whatever happens in between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

import embedlog
from tests.spark.logs import add, filled

pytestmark = pytest.mark.slow


def _stream(spark: Any, path: Path, **options: str) -> Any:
    reader = spark.readStream.format("embedlog").option("path", str(path))
    return reader.options(**{"subscribe": "t", "startingOffsets": "earliest", **options}).load()


def _run(frame: Any, tmp_path: Path, found: list[int]) -> list[dict[str, Any]]:
    """Read all available records into `found`; return the progress of each batch."""

    def take(batch: Any, _number: int) -> None:
        found.extend(row.offset for row in batch.select("offset").collect())

    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [json.loads(each.json) for each in query.recentProgress]


def test_a_query_goes_on_where_the_last_one_ended(spark: Any, tmp_path: Path) -> None:
    found: list[int] = []
    with filled(tmp_path / "log", {"t": [10]}) as cluster:
        _run(_stream(spark, tmp_path / "log"), tmp_path, found)
        assert sorted(found) == list(range(10))
        add(cluster, "t", 0, range(10, 25))
        _run(_stream(spark, tmp_path / "log"), tmp_path, found)
    assert sorted(found) == list(range(25))


def test_batches_are_limited_and_new_partitions_begin_at_their_first_record(
    spark: Any, tmp_path: Path
) -> None:
    found: list[int] = []
    with filled(tmp_path / "log", {"t": [10, 10]}) as cluster:
        limited = {"maxOffsetsPerTrigger": "6"}
        batches = _run(_stream(spark, tmp_path / "log", **limited), tmp_path, found)
        assert sorted(found) == sorted([*range(10), *range(10)])
        assert max(each["numInputRows"] for each in batches) <= 6
        with cluster.admin() as admin:
            admin.create_partitions({"t": 3}).check()
        add(cluster, "t", 2, range(4))
        found.clear()
        _run(_stream(spark, tmp_path / "log", **limited), tmp_path, found)
    assert sorted(found) == [0, 1, 2, 3]


def test_latest_begins_behind_what_is_there_and_loses_nothing(spark: Any, tmp_path: Path) -> None:
    found: list[int] = []
    with filled(tmp_path / "log", {"t": [10]}) as cluster:
        latest = {"startingOffsets": "latest"}
        _run(_stream(spark, tmp_path / "log", **latest), tmp_path, found)
        assert found == []
        add(cluster, "t", 0, range(10, 13))
        _run(_stream(spark, tmp_path / "log", **latest), tmp_path, found)
    assert sorted(found) == [10, 11, 12]


def test_records_that_are_gone_fail_the_query(spark: Any, tmp_path: Path) -> None:
    found: list[int] = []
    with filled(tmp_path / "log", {"t": [10]}) as cluster:
        _run(_stream(spark, tmp_path / "log"), tmp_path, found)
        add(cluster, "t", 0, range(10, 20))
        with cluster.admin() as admin:
            admin.delete_records({("t", 0): 15}).check()
        with pytest.raises(Exception, match=r"Could not read records in offset \[10, 15\)"):
            _run(_stream(spark, tmp_path / "log"), tmp_path, found)
        tolerant = _stream(spark, tmp_path / "log", failOnDataLoss="false")
        _run(tolerant, tmp_path, found)
    assert sorted(found) == [*range(10), *range(15, 20)]


def test_a_groups_offsets_follow_a_query(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [10]}) as cluster:
        address = cluster.listen("127.0.0.1", 0).address
        options = {
            "commitOffsets": "true",
            "kafka.group.id": "pipeline",
            "kafka.bootstrap.servers": address,
            "maxOffsetsPerTrigger": "4",
        }
        _run(_stream(spark, tmp_path / "log", **options), tmp_path, [])
        with cluster.admin() as admin:
            stored = admin.list_group_offsets(["pipeline"])["pipeline"]
        # Spark commits a batch when it plans the next one: the last one is never committed.
        assert stored[embedlog.TopicPartition("t", 0)].offset >= 4


def test_one_batch_reads_what_is_there(spark: Any, tmp_path: Path) -> None:
    found: list[int] = []
    with filled(tmp_path / "log", {"t": [10]}):
        query = (
            _stream(spark, tmp_path / "log")
            .writeStream.foreachBatch(
                lambda batch, _: found.extend(row.offset for row in batch.collect())
            )
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(once=True)
            .start()
        )
        query.awaitTermination()
    assert sorted(found) == list(range(10))


def test_a_topic_that_is_deleted_fails_a_query_of_a_pattern(spark: Any, tmp_path: Path) -> None:
    found: list[int] = []
    pattern = {"subscribePattern": "a|b"}
    with filled(tmp_path / "log", {"a": [5], "b": [5]}) as cluster:

        def run(**options: str) -> None:
            reader = spark.readStream.format("embedlog").option("path", str(tmp_path / "log"))
            options = {"startingOffsets": "earliest", **pattern, **options}
            _run(reader.options(**options).load(), tmp_path, found)

        run()
        assert sorted(found) == sorted([*range(5), *range(5)])
        with cluster.admin() as admin:
            admin.delete_topics(["b"]).check()
        with pytest.raises(Exception, match=r"Partitions Set\(b-0\) have been deleted"):
            run()
        run(failOnDataLoss="false")
        add(cluster, "a", 0, range(5, 7))
        run(failOnDataLoss="false")
    assert sorted(found)[-2:] == [5, 6]


def test_a_topic_made_anew_fails_the_query_until_losses_are_tolerated(
    spark: Any, tmp_path: Path
) -> None:
    """Also after restarts, and once the new topic is longer than the old offset."""
    found: list[int] = []
    frame = _stream(spark, tmp_path / "log")
    with filled(tmp_path / "log", {"t": [10]}) as cluster:
        _run(frame, tmp_path, found)
        with cluster.admin() as admin:
            admin.delete_topics(["t"]).check()
        cluster.create_topic("t", 1, config={"retention.ms": "-1"})
        add(cluster, "t", 0, range(4))
        with pytest.raises(StreamingQueryException, match="offset was changed from 10 to 4"):
            _run(_stream(spark, tmp_path / "log"), tmp_path, found)
        add(cluster, "t", 0, range(4, 30))
        for _ in range(2):
            with pytest.raises(StreamingQueryException, match="Topic t was deleted and re-created"):
                _run(_stream(spark, tmp_path / "log"), tmp_path, found)
        assert sorted(found) == list(range(10))
        tolerant = {"failOnDataLoss": "false"}
        _run(_stream(spark, tmp_path / "log", **tolerant), tmp_path, found)
        add(cluster, "t", 0, range(30, 33))
        found.clear()
        _run(_stream(spark, tmp_path / "log"), tmp_path, found)
        assert found == [30, 31, 32]


def test_offsets_without_ids_are_taken_as_they_are(spark: Any, tmp_path: Path) -> None:
    """Checkpoints of the connector, and of versions that kept no ids, have none."""
    found: list[int] = []
    with filled(tmp_path / "log", {"t": [10]}) as cluster:
        _run(_stream(spark, tmp_path / "log"), tmp_path, found)
        newest = max((tmp_path / "checkpoint/offsets").iterdir(), key=lambda p: p.name)
        (tmp_path / f"checkpoint/offsets/.{newest.name}.crc").unlink(missing_ok=True)
        text = newest.read_text()
        known = json.loads(text.splitlines()[-1])["t"]
        assert list(known) == ["00", "0"]
        newest.write_text(text.replace(f'"00": {known["00"]}, ', "").replace(
            f'"00":{known["00"]},', ""))  # fmt: skip
        assert '"00"' not in newest.read_text()
        add(cluster, "t", 0, range(10, 12))
        _run(_stream(spark, tmp_path / "log"), tmp_path, found)
    assert sorted(found) == list(range(12))
