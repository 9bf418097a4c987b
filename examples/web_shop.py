"""A web shop that sends its mails by a job queue: outbox, workers, retries, dead jobs, cron.

python examples/web_shop.py work shop &         # as many workers as you like
python examples/web_shop.py sell shop 20
python examples/web_shop.py look shop           # customer-5 has a wrong address in shop.customers
python examples/web_shop.py mend shop           # put the dead jobs into the queue again

All processes share the directory `shop`. The first one opens it, the others connect to it, and when
it ends, another opens it. SIGTERM or Ctrl-C ends a worker after its running jobs.
"""

import json
import sqlite3
import sys
from pathlib import Path

import embedlog


class MailServer:
    """A mail server for tests: busy at the first try of every third order, and strict."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._connected() as base:
            base.execute("CREATE TABLE IF NOT EXISTS tries (key TEXT)")
            base.execute("CREATE TABLE IF NOT EXISTS mails (key TEXT PRIMARY KEY, address TEXT)")

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)

    def send(self, key: str, address: str, *, is_busy_first: bool = False) -> None:
        """Send a mail once for each key: a job may come twice, its mail does not go out twice."""
        with self._connected() as base:
            base.execute("INSERT INTO tries VALUES (?)", [key])
            (count,) = base.execute("SELECT count(*) FROM tries WHERE key = ?", [key]).fetchone()
        if is_busy_first and count == 1:
            raise ConnectionError("the mail server is busy")
        if "@" not in address:
            raise ValueError(f"{address!r} is no address")
        with self._connected() as base:
            base.execute("INSERT OR IGNORE INTO mails VALUES (?, ?)", [key, address])


def sell(data: Path, count: int) -> None:
    """Take orders. An order and its mail are one transaction: both exist, or neither."""
    customers = data.with_suffix(".customers")
    if not customers.exists():
        addresses = {f"customer-{number}": f"{number}@example.com" for number in range(7)}
        customers.write_text(json.dumps({**addresses, "customer-5": "nobody"}))
    with (
        embedlog.connect_or_open(data) as cluster,
        cluster.queue("mails", retries=3) as queue,
        cluster.producer(transactional_id="web-1") as producer,
    ):
        # With an id, a restart replaces the job and makes no second one. Here it comes each second.
        queue.put({"task": "report"}, cron="* * * * * *", id="report")
        producer.init_transactions()
        for number in range(count):
            customer = f"customer-{number % 7}"
            order = {"number": number, "customer": customer}
            with producer.transaction() as transaction:
                transaction.send("orders", json.dumps(order).encode(), key=customer.encode())
                queue.put({"task": "confirm", **order}, transaction=transaction)
            # Many orders ask for it, and it is done once in five minutes.
            queue.put({"task": "recount the stock"}, dedupe="recount", window=300)
    print(f"{count} orders", flush=True)


def work(data: Path) -> None:
    """Send the mails, until SIGTERM or Ctrl-C."""
    server = MailServer(data.with_suffix(".mails"))
    customers = data.with_suffix(".customers")
    with (
        embedlog.connect_or_open(data) as cluster,
        cluster.queue("mails", retries=3) as queue,
    ):

        @queue.worker(concurrency=2, backoff=embedlog.exponential(0.1, 60))
        def handle(job: embedlog.Job) -> None:
            if job.value["task"] == "confirm":
                number, customer = job.value["number"], job.value["customer"]
                address = json.loads(customers.read_text())[customer]
                server.send(f"order {number}", address, is_busy_first=number % 3 == 0)
            else:
                server.send(f"{job.value['task']} {job.id}", "boss@example.com")
            print(f"done {job.id}", flush=True)

        print("working", flush=True)
        handle.run()
    print("stopped", flush=True)


def look(data: Path) -> None:
    """Show the dashboard, and the jobs that were given up."""
    with embedlog.connect_or_open(data) as cluster, cluster.queue("mails") as queue:
        stats = queue.stats()
        waiting = stats.ready + stats.locked
        age = stats.oldest_s or 0
        print(f"{waiting} waiting for {age:.0f} s, {stats.delayed} later, {stats.dead} dead")
        for job in queue.dead:
            print(f"{job.value['customer']}: {job.reason} after {job.deliveries} tries")


def mend(data: Path) -> None:
    """Put the dead jobs into the queue again; somebody has corrected the addresses."""
    with embedlog.connect_or_open(data) as cluster, cluster.queue("mails") as queue:
        print(f"{queue.dead.redrive()} jobs again")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    role, where, *more = sys.argv[1:]
    if role == "sell":
        sell(Path(where), int(*more))
    else:
        {"work": work, "look": look, "mend": mend}[role](Path(where))
