"""Delta Lake without a JAR: the tasks write Parquet, the driver commits with `deltalake`.

The commit carries Delta's own application transaction (query id, batch id), which tells whether a
batch is in the table. Other readers of the protocol know it as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.errors import ProjectError, TableConflict
from embedlog.spark.pipeline.tables.locking import LockedFormat
from embedlog.spark.pipeline.tables.table import ROWS, Basis, CommitKey, DataFile, check_staged

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaFormat(LockedFormat):
    """A Delta table of rows at `path`. Its first commit makes it. Implements `TableFormat`."""

    def __init__(
        self,
        path: str,
        partition_by: Sequence[str] = (),
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        try:
            import deltalake
        except ImportError:
            raise ProjectError("deltalake is missing: pip install 'embedlog[pipeline]'") from None
        self._library = deltalake
        self.path = path
        self._partition_by = list(partition_by)
        self._reached = reached

    def version_of(self, app: str) -> int:
        table = self._open()
        found = None if table is None else table.transaction_version(app)
        return -1 if found is None else found

    def files(self, part: str = ROWS) -> list[DataFile]:
        table = self._open()
        if table is None or part != ROWS:
            return []
        # Not flattened: partition values stay one struct, which `select` leaves out.
        actions = pa.table(table.get_add_actions()).select(["path", "size_bytes", "num_records"])
        return [
            DataFile(f"{self.path}/{unquote(each['path'])}", each["num_records"] or 0,
                     each["size_bytes"])
            for each in actions.to_pylist()
        ]  # fmt: skip

    def _commit(
        self,
        key: CommitKey,
        adds: Sequence[DataFile],
        removes: Sequence[DataFile],
        bases: Sequence[Basis],
    ) -> bool:
        if self.version_of(key.app) >= key.version:
            return False
        present = self.files() if bases else ()
        for basis in bases:
            basis.check(present)
        check_staged(adds, real_runtime().files)
        library = self._library
        properties = library.CommitProperties(
            app_transactions=[library.Transaction(key.app, key.version)],
            custom_metadata={"embedlog.batch": str(key.version)},
        )
        table = self._open()
        self._reached("table: before the commit")
        if table is None:
            self._create(adds, properties)
        else:
            self._append(table, adds, removes, properties)
        self._reached("table: after the commit")
        return True

    def _create(self, adds: Sequence[DataFile], properties: Any) -> None:
        from deltalake.transaction import create_table_with_add_actions

        if not adds:
            raise ProjectError(f"{self.path}: a Delta table needs a row to be made")
        create_table_with_add_actions(
            self.path,
            self._schema(adds),
            [self._add(each) for each in adds],
            "error",
            self._partition_by,
            commit_properties=properties,
        )

    def _append(
        self, table: DeltaTable, adds: Sequence[DataFile], removes: Sequence[DataFile],
        properties: Any,
    ) -> None:  # fmt: skip
        from deltalake.exceptions import CommitFailedError

        schema = table.schema()
        if adds:
            wanted = self._schema(adds)
            known = {each.name for each in schema.fields}
            new = [each for each in wanted.fields if each.name not in known]
            if new:
                table.alter.add_columns(new)
                schema = table.schema()
        live = {each.path: each for each in self.files()} if removes else {}
        for each in removes:
            if each.path not in live:
                raise TableConflict(f"{self.path}: another commit took {each.path} away")
        actions = [*map(self._add, adds), *map(self._remove, removes)]
        try:
            table.create_write_transaction(
                actions, "append", schema, self._partition_by, commit_properties=properties
            )
        except CommitFailedError as error:
            raise TableConflict(f"{self.path}: {error}") from error

    def _open(self) -> DeltaTable | None:
        if not self._library.DeltaTable.is_deltatable(self.path):
            return None
        return self._library.DeltaTable(self.path)

    def _schema(self, adds: Sequence[DataFile]) -> Any:
        found = pa.unify_schemas([pq.read_schema(each.path) for each in adds])
        return self._library.Schema.from_arrow(found)

    def _add(self, file: DataFile) -> Any:
        from deltalake.transaction import AddAction

        return AddAction(
            self._relative(file),
            file.size_bytes,
            dict(file.partition),
            real_runtime().clock.wall_ms(),
            True,
            json.dumps({"numRecords": file.row_count}),
        )

    def _remove(self, file: DataFile) -> Any:
        from deltalake.transaction import RemoveAction

        return RemoveAction(self._relative(file), deletion_timestamp=real_runtime().clock.wall_ms(),
                            data_change=True, size=file.size_bytes)  # fmt: skip

    def _relative(self, file: DataFile) -> str:
        # Delta's log holds paths as URIs: escape the `%` of an escaped directory name again.
        return quote(str(Path(file.path).relative_to(self.path)), safe="/=")
