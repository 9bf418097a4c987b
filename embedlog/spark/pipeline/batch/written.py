"""How many rows a batch brings to each sink, stored before the sink's commit.

If a run dies after a commit and before the batch is counted, the next run finds the batch in the
sink and writes nothing. Its count then comes from here, so that totals have all committed rows:

    written.json   {"app": ..., "version": 7, "rows": {"orders": 812}}
"""

from __future__ import annotations

import json
from typing import Any

from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory, write_whole
from embedlog.spark.pipeline.tables.table import CommitKey


class WrittenFile:
    """The counts of the last batch in a pipeline's state directory."""

    def __init__(self, state: str) -> None:
        self._path = f"{state}/written.json"
        self._directory = state
        self._files = real_runtime().files

    def note(self, key: CommitKey, sink: str, count: int) -> None:
        """Store the rows of a batch for a sink. Call it before the sink's commit."""
        make_directory(self._files, self._directory, sync=True)
        rows = {**self._rows(key), sink: count}
        document = {"app": key.app, "version": key.version, "rows": rows}
        write_whole(self._files, self._path, json.dumps(document).encode(), sync=True)

    def noted(self, key: CommitKey, sink: str) -> int:
        """Return the rows that the sink's commit of a batch had; 0 if nothing was stored."""
        count: int = self._rows(key).get(sink, 0)
        return count

    def _rows(self, key: CommitKey) -> dict[str, Any]:
        if self._files.stat(self._path) is None:
            return {}
        found = json.loads(self._files.read(self._path))
        rows: dict[str, Any] = found["rows"]
        return rows if (found["app"], found["version"]) == key else {}
