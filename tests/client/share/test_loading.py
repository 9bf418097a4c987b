"""Nobody pays for share groups who does not use them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import embedlog
with embedlog.open() as cluster, cluster.producer() as producer:
    producer.send("events", b"value").result()
    with cluster.consumer(group_id="readers") as consumer, cluster.admin() as admin:
        consumer.subscribe(["events"])
        consumer.poll(0)
        admin.list_topics()
print(*(name for name in sys.modules if "client.share" in name or "schemas.share" in name))
"""


def test_other_clients_load_nothing_of_it() -> None:
    command = [sys.executable, "-c", PROGRAM]
    program = subprocess.run(command, capture_output=True, text=True, check=True)
    assert program.stdout.split() == []
