"""`embedlog queue`: its output and its exit status, for a directory and for an address."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.cli import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        yield opened


@pytest.fixture
def queue(cluster: embedlog.Cluster) -> Iterator[embedlog.Queue]:
    with cluster.queue("mails", priorities=2) as opened:
        yield opened


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs the command in this process."""

    def run(verb: str, *arguments: object) -> tuple[int, str, str]:
        status = main(["queue", verb, *map(str, arguments)])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def at(cluster: embedlog.Cluster, queue: embedlog.Queue, call: Call) -> Call:
    """Return a function that runs a verb for the queue, at the address of its cluster."""
    address = cluster.listen("127.0.0.1", 0).address
    return lambda verb, *arguments: call(verb, address, queue.name, *arguments)


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def taken(queue: embedlog.Queue) -> embedlog.Job:
    job = queue.get(timeout=10)
    assert job is not None
    return job


def test_stats_count_the_jobs(queue: embedlog.Queue, at: Call) -> None:
    assert at("stats") == (0, "mails: 0 ready or locked, 0 delayed, 0 dead\n", "")
    queue.put(b"1")
    queue.put(b"2", priority=1)
    queue.put(b"3", delay=1000)
    status, out, err = at("stats")
    assert (status, err) == (0, "")
    assert out.startswith("mails: 2 ready or locked, 1 delayed, 0 dead; the oldest is ")
    (numbers,) = lines(at("stats", "--json")[1])
    assert numbers.pop("oldest_s") < 600
    assert numbers == {"queue": "mails", "undone": 2, "delayed": 1, "dead": 0}


def test_peek_shows_the_next_jobs_and_takes_none(queue: embedlog.Queue, at: Call) -> None:
    queue.put({"to": "a@example.com"}, key="customer 7")
    urgent = queue.put(b"caf\xc3\xa9\n\xff", priority=1)
    status, out, err = at("peek")
    assert (status, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith(f"{urgent}  put_at=20")
    assert first.endswith("  value=café\\n\\xff")
    assert second.startswith("mails-0-0  key=customer 7  put_at=20")
    assert second.endswith('  value={"to": "a@example.com"}')
    (only,) = lines(at("peek", "-n", 1, "--json")[1])
    assert (only["id"], only["value"]) == (urgent, "café\n\\xff")
    assert taken(queue).deliveries == 1


def test_dead_jobs_are_listed_redriven_and_dropped(queue: embedlog.Queue, at: Call) -> None:
    made = [queue.put({"number": number}) for number in range(4)]
    for _ in range(3):
        taken(queue).reject("no such customer")
    taken(queue).fail(ValueError("never"), retries=0)
    status, out, err = at("dead")
    assert (status, err) == (0, "")
    first, *_, last = out.splitlines()
    assert first.startswith(f"{made[0]}  deliveries=1  died_at=20")
    assert first.endswith("  reason=no such customer")
    assert last.endswith("  reason=ValueError: never")
    found = lines(at("dead", "--values", "--json")[1])
    assert [each["value"] for each in found] == [{"number": number} for number in range(4)]
    assert at("redrive", made[1]) == (0, "1 job redriven\n", "")
    assert at("drop", made[0], "x") == (
        1,
        "1 job dropped\n",
        "embedlog: 'mails' has no dead job 'x'\n",
    )
    assert lines(at("redrive", "--all", "--json")[1]) == [{"redriven": 2}]
    assert at("dead") == (0, "", "")
    assert {taken(queue).id for _ in range(3)} == set(made[1:])


def test_ids_or_all_must_be_given(at: Call) -> None:
    for arguments in ((), ("x", "--all")):
        for verb in ("redrive", "drop"):
            assert at(verb, *arguments) == (2, "", "embedlog: give ids of dead jobs, or --all\n")


def test_put_takes_a_value_and_options(queue: embedlog.Queue, at: Call) -> None:
    assert at("put", "text", "--key", "k", "--priority", 1) == (0, "mails.p1-0-0\n", "")
    job = taken(queue)
    assert (job.value, job.key, job.priority) == (b"text", b"k", 1)
    assert lines(at("put", '{"a": 1}', "--parse-json", "--json")[1]) == [{"id": "mails-0-0"}]
    assert taken(queue).value == {"a": 1}
    assert at("put", "first", "--delay", 1000, "--id", "mine") == (0, "mine\n", "")
    assert at("put", "nightly", "--cron", "0 3 * * *", "--id", "report") == (0, "report\n", "")
    assert queue.stats().delayed == 2
    assert at("cancel", "mine", "report") == (0, "", "")
    (numbers,) = lines(at("stats", "--json")[1])
    assert numbers["delayed"] == 0


@pytest.mark.slow
def test_put_makes_a_job_of_each_line(
    queue: embedlog.Queue, at: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{number}\n" for number in range(1200))))
    status, out, _ = at("put", "--parse-json")
    assert (status, len(out.splitlines())) == (0, 1200)
    assert [taken(queue).value for _ in range(1200)] == list(range(1200))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["x", "--delay", "-1"], "put(delay=-1.0): expected 0 to"),
        (["x", "--priority", "2"], "put(priority=2): this queue has the priorities 0 to 1"),
        (["x", "--cron", "* *"], "put(cron='* *'): "),
        (["{", "--parse-json"], "'{' is no JSON"),
    ],
)
def test_a_wrong_put_is_one_line(
    queue: embedlog.Queue, at: Call, arguments: list[str], text: str
) -> None:
    status, out, err = at("put", *arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"embedlog: {text}")
    assert queue.peek() == []


def test_a_queue_is_made_only_on_demand(cluster: embedlog.Cluster, at: Call, call: Call) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    for verb in ("stats", "peek", "dead", "put"):
        missing = (2, "", "embedlog: there is no queue 'mail'; the queues are mails\n")
        assert call(verb, address, "mail") == missing
    assert call("put", address, "mail", "x", "--create")[:2] == (0, "mail-0-0\n")
    assert call("peek", address, "mail")[0] == 0


def test_a_path_without_a_log_is_refused(tmp_path: Path, call: Call) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        text = f"embedlog: {path}: no data directory, and no address\n"
        assert call("put", path, "mails", "x", "--create") == (2, "", text)
    assert list(tmp_path.iterdir()) == []


def test_an_address_without_a_broker_is_refused_in_time(call: Call) -> None:
    status, out, err = call("stats", "127.0.0.1:1", "mails", "--timeout", "0.1")
    assert (status, out) == (2, "")
    assert "embedlog: the brokers did not answer within 100 ms" in err


@pytest.mark.slow
def test_a_directory_may_be_open_or_not(tmp_path: Path, call: Call) -> None:
    data = tmp_path / "data"
    with embedlog.open(data) as cluster, cluster.queue("mails") as queue:
        queue.put(b"1")
        status, out, err = call("stats", data, "mails", "--timeout", 0)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert str(data) in err
    for _ in range(2):
        assert call("stats", data, "mails")[1].startswith("mails: 1 ready or locked, ")
    with embedlog.connect_or_open(data) as owner, owner.queue("mails") as queue:
        assert call("put", data, "mails", "2")[:2] == (0, "mails-0-1\n")
        assert [taken(queue).value for _ in range(2)] == [b"1", b"2"]
        assert call("stats", data, "mails")[1].startswith("mails: 2 ready or locked, ")
