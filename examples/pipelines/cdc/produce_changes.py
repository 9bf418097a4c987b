"""Write four changes of two customers as Debezium does, with the tombstone after a deletion."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import embedlog

START_MS = 1_767_225_600_000  # 2026-01-01
Row = dict[str, Any] | None


def customer(number: int, name: str, city: str | None) -> Row:
    return {"id": number, "name": name, "city": city}


CHANGES: list[tuple[str, Row, Row]] = [
    ("c", None, customer(1, "Ada", "Bern")),
    ("c", None, customer(2, "Bob", None)),
    ("u", customer(1, "Ada", "Bern"), customer(1, "Ada", "Basel")),
    ("d", customer(2, "Bob", None), None),
]


def main(directory: Path) -> None:
    with embedlog.open(directory / "log") as cluster, cluster.producer() as producer:
        for day, (operation, before, after) in enumerate(CHANGES):
            row = after or before
            assert row is not None, operation
            key = json.dumps({"id": row["id"]}).encode()
            change = {"before": before, "after": after, "op": operation}
            values: list[bytes | None] = [json.dumps(change).encode()]
            if operation == "d":
                values.append(None)
            for value in values:
                timestamp = START_MS + day * 86_400_000
                producer.send("shop.customers", value, key=key, partition=0, timestamp_ms=timestamp)
        producer.flush()
    print(f"{len(CHANGES)} changes in {directory / 'log'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
