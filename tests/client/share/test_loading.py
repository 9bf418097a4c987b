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
print(*(name for name in sys.modules if ".share" in name and ".share_groups" not in name))
"""


def test_other_clients_load_nothing_of_it() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []
