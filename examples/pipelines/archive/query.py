"""Query an archive with DuckDB: the events of each day and the greatest number in them.

    python produce_events.py
    embedlog pipeline archive tables/events --path log --topic events
    python query.py
    embedlog pipeline restore tables/events --path restored

Run `archive` again to add the newer records; run `diff` to compare the archive with the log.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from embedlog.spark.pipeline import read_table

QUERY = """
SELECT date, count(*), max(CAST(json_extract(decode(value)::JSON, '$.n') AS BIGINT))
FROM archive GROUP BY date ORDER BY date
"""


def main(directory: Path) -> None:
    # The manifest names the valid files; a glob would also find files of failed tasks.
    archive = duckdb.read_parquet(read_table(directory / "tables/events").paths)
    answer = archive.query("archive", QUERY)
    for day, count, greatest in answer.fetchall() if answer else ():
        print(f"{day}: {count} events, up to {greatest}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
