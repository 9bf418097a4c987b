"""A producing service: it sends a sensor reading every 50 ms, until SIGTERM or Ctrl-C.

embedlog serve --port 9092
python examples/producer_service.py localhost:9092 readings
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import time

import embedlog


def report(metadata: embedlog.RecordMetadata, error: Exception | None) -> None:
    """Print the outcome of one record; the producer calls this for each record."""
    if error is None:
        print(f"written to {metadata.topic}-{metadata.partition} at {metadata.offset}", flush=True)
    else:
        print(f"lost: {error}", flush=True)


def main(address: str, topic: str) -> None:
    """Send readings until SIGTERM or Ctrl-C, then wait until all of them are written."""
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stopping.append(number))

    with embedlog.Producer(address) as producer:  # its close waits for unwritten records
        for count in itertools.count():
            if stopping:
                break
            reading = {"count": count, "celsius": 20 + count % 7}
            key = f"sensor-{count % 3}".encode()  # readings of one sensor stay in order
            producer.send(topic, json.dumps(reading).encode(), key=key, on_delivery=report)
            time.sleep(0.05)
    print("stopped", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
