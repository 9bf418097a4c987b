"""Each example runs, and its output is right."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import embedlog
from tests.spark.conftest import need_spark

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
# Spark's workers run the first `python3` of the path; an active environment comes first.
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
}


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, check=False,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Service:
    """An example that runs until it gets a signal."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.lines: list[str] = []

    def read_until(self, is_enough: Callable[[list[str]], bool]) -> None:
        """Read its output up to a line; the test's time-out is the limit."""
        assert self._process.stdout is not None
        while not is_enough(self.lines):
            line = self._process.stdout.readline()
            assert line, f"it ended: {self.lines[-5:]}"
            self.lines.append(line.rstrip("\n"))

    def stop(self) -> None:
        """Send SIGTERM and return all output up to its successful end."""
        self._process.send_signal(signal.SIGTERM)
        rest, _ = self._process.communicate()
        self.lines += rest.splitlines()
        assert self._process.returncode == 0, self.lines[-20:]
        assert self.lines[-1] == "stopped"

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()
        self._process.wait()

    def handled(self) -> set[int]:
        """Return the numbers that a consumer service has handled."""
        return {int(line.split()[1]) for line in self.lines if line.startswith("handled")}


def wait_until(is_true: Callable[[], bool]) -> None:
    """Look until it is true; the test's time-out is the limit."""
    while not is_true():
        time.sleep(0.05)


@contextlib.contextmanager
def service(name: str, *arguments: str) -> Iterator[Service]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT
    ) as process:
        try:
            yield Service(process)
        finally:
            process.kill()


@pytest.mark.slow
def test_the_embedded_queue_continues_where_it_stopped(tmp_path: Path) -> None:
    example = str(EXAMPLES / "embedded_queue.py")
    first = run(example, str(tmp_path / "queue"))
    assert first.splitlines() == ["durable up to offset 2", "0 job 0", "1 job 1", "2 job 2"]
    second = run(example, str(tmp_path / "queue"))
    assert second.splitlines() == ["durable up to offset 5", "3 job 0", "4 job 1", "5 job 2"]


@pytest.mark.slow
def test_each_order_has_one_invoice(tmp_path: Path) -> None:
    example = str(EXAMPLES / "exactly_once.py")
    orders = ["invoice for order 0", "invoice for order 1", "invoice for order 2"]
    assert run(example, str(tmp_path / "shop")).splitlines() == orders
    assert run(example, str(tmp_path / "shop")).splitlines() == orders * 2


@pytest.mark.slow
def test_the_fake_broker_serves_a_unit_test() -> None:
    out = run("-m", "pytest", "-p", "no:cacheprovider", str(EXAMPLES / "fake_broker.py"))
    assert "1 passed" in out


@pytest.mark.slow
def test_the_broker_in_a_unit_test_needs_no_port() -> None:
    out = run("-m", "pytest", "-p", "no:cacheprovider", str(EXAMPLES / "unit_test_with_broker.py"))
    assert "3 passed" in out


def test_columns_count_every_record() -> None:
    assert run(str(EXAMPLES / "columns.py")) == "100000 records, 400000 bytes of values\n"


@pytest.mark.slow
def test_services_share_the_work_and_stop_cleanly() -> None:
    """Two consumers; one is stopped in the middle, and the other takes over."""
    with embedlog.open() as cluster:
        cluster.create_topic("readings", 4)
        address = cluster.listen("127.0.0.1", 0).address
        consume = ("consumer_service.py", address, "readings", "averages")
        with (
            service("producer_service.py", address, "readings") as producer,
            service(*consume) as first,
            service(*consume) as second,
        ):
            first.read_until(lambda lines: any("handled" in line for line in lines))
            first.stop()
            second.read_until(lambda lines: any(line.count("readings-") == 4 for line in lines))
            producer.read_until(lambda lines: len(lines) >= 20)
            producer.stop()
            count = sum(line.startswith("written") for line in producer.lines)
            assert count == len(producer.lines) - 1, "everything that was sent is written"
            everything = set(range(count))
            second.read_until(lambda _: first.handled() | second.handled() == everything)
            second.stop()
        with cluster.admin() as admin:
            assert admin.describe_groups(["averages"])["averages"].members == []


@pytest.mark.slow
def test_the_asyncio_service_works_on_many_jobs_at_once() -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("jobs", 2)
        address = cluster.listen("127.0.0.1", 0).address
        with cluster.producer() as producer, service("asyncio_service.py", address) as worker:
            for number in range(30):
                producer.send("jobs", b"job %d" % number).result()
            worker.read_until(lambda lines: len(lines) == 30)
            worker.stop()
        with cluster.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("results", 0)])
            done = {record.value for record in consumer.poll(1000)}
        assert done == {b"JOB %d" % number for number in range(30)}


@pytest.mark.slow
def test_spark_makes_the_same_table_from_a_directory_and_from_a_cluster(tmp_path: Path) -> None:
    need_spark()
    import pyarrow.parquet as pq

    data, sent = tmp_path / "data", [(b"k%d" % number, b"v%d" % number) for number in range(50)]
    with embedlog.open(data) as cluster:
        cluster.create_topic("events", 2)
        with cluster.producer() as producer:
            for key, value in sent:
                producer.send("events", value, key=key)
        address = cluster.listen("127.0.0.1", 0).address
        tables = []
        for option, place in (("path", str(data)), ("kafka.bootstrap.servers", address)):
            table = str(tmp_path / option)
            out = run(str(EXAMPLES / "spark_read.py"), option, place, "events", table)
            assert out == "50 records\n"
            rows = pq.read_table(table).to_pylist()
            tables.append(sorted(rows, key=lambda row: (row["partition"], row["offset"])))
    assert tables[0] == tables[1]
    assert sorted((row["key"], row["value"]) for row in tables[0]) == sorted(sent)


@pytest.mark.slow
def test_the_web_shop_sends_each_mail_once(tmp_path: Path) -> None:
    """Of three workers, one is stopped and one is killed; one customer has a wrong address."""
    data, orders = tmp_path / "shop", range(30)
    addresses = {f"customer-{number}": f"{number}@example.com" for number in range(7)}
    customers = data.with_suffix(".customers")
    customers.write_text(json.dumps({**addresses, "customer-5": "nobody"}))
    shop = (str(EXAMPLES / "web_shop.py"),)

    def sent() -> dict[str, str]:
        with sqlite3.connect(data.with_suffix(".mails"), timeout=30) as base:
            return dict(base.execute("SELECT key, address FROM mails"))

    with (
        service("web_shop.py", "work", str(data)) as first,
        service("web_shop.py", "work", str(data)) as second,
        service("web_shop.py", "work", str(data)) as third,
        embedlog.connect_or_open(data) as cluster,
        cluster.queue("mails") as queue,
    ):
        for worker in (first, second, third):
            worker.read_until(lambda lines: "working" in lines)
        assert run(*shop, "sell", str(data), "30") == "30 orders\n"
        first.read_until(lambda lines: any("done" in line for line in lines))
        first.stop()
        second.kill()
        good = {f"order {number}" for number in orders if number % 7 != 5}
        wait_until(lambda: good <= sent().keys() and len(queue.dead) == 4)
        dashboard, *dead = run(*shop, "look", str(data)).splitlines()
        assert re.fullmatch(r"\d+ waiting for \d+ s, 2 later, 4 dead", dashboard), dashboard
        reason = r"customer-5: ValueError: 'nobody' is no address after \d+ tries"
        assert len(dead) == 4
        assert all(re.fullmatch(reason, line) for line in dead), dead
        customers.write_text(json.dumps(addresses))
        assert run(*shop, "mend", str(data)) == "4 jobs again\n"
        wait_until(lambda: {f"order {number}" for number in orders} <= sent().keys())
        third.stop()
        assert len(queue.dead) == 0
        mails = sent()
        for number in orders:
            assert mails.pop(f"order {number}") == addresses[f"customer-{number % 7}"]
        kinds = Counter(key.rpartition(" ")[0] for key in mails)
        assert kinds.keys() == {"report", "recount the stock"}
        assert kinds["recount the stock"] == 1
        with cluster.consumer(isolation_level="read_committed") as consumer:
            consumer.assign([("orders", 0)])
            consumer.seek_to_beginning()
            found = [json.loads(record.value or b"")["number"] for record in consumer.poll(10_000)]
        assert found == list(orders)


def test_every_example_has_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "asyncio_service", "columns", "consumer_service", "embedded_queue", "exactly_once",
        "fake_broker",
        "producer_service", "spark_read", "unit_test_with_broker", "web_shop",
    }  # fmt: skip
