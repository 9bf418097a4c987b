"""Iceberg without a JAR: the tasks write Parquet, the driver commits with `pyiceberg`.

One transaction adds files, removes others, and stores (query id, batch id) as a property of the
table. The property tells whether the table has a batch; the snapshot's summary has the pair. The
catalogue is SQLite beside the table unless the sink's options name another catalogue: `table` is
the table's name in it, and `catalog.<key>` are pyiceberg's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory
from embedlog.spark.pipeline.errors import ProjectError, TableConflict
from embedlog.spark.pipeline.tables.locking import LockedFormat
from embedlog.spark.pipeline.tables.table import ROWS, Basis, CommitKey, DataFile, check_staged

if TYPE_CHECKING:
    from pyiceberg.table import Table

_APP = "embedlog.app."
_ATTEMPTS = 5


class IcebergFormat(LockedFormat):
    """An Iceberg table of rows in `path`. Its first commit makes it. Implements `TableFormat`."""

    def __init__(
        self,
        path: str,
        options: Mapping[str, str],
        partition_by: Sequence[str] = (),
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError:
            raise ProjectError("pyiceberg is missing: pip install 'embedlog[pipeline]'") from None
        self.path = path
        self._partition_by = partition_by
        self._reached = reached
        self._name = options.get("table", "pipeline.rows")
        given = {k[8:]: v for k, v in options.items() if k.startswith("catalog.")}
        for name in options:
            if name != "table" and not name.startswith("catalog."):
                raise ProjectError(f"iceberg option {name!r}: `table` or `catalog.<key>`")
        if self._name.count(".") < 1:
            raise ProjectError(f"iceberg table {self._name!r}: namespace.table is needed")
        if not given:
            make_directory(real_runtime().files, path, sync=True)
            given = {
                "type": "sql",
                "uri": f"sqlite:///{path}/catalog.sqlite",
                "warehouse": f"file://{path}",
            }
        self._catalog = load_catalog("embedlog", **given)

    def version_of(self, app: str) -> int:
        table = self.table()
        return -1 if table is None else int(table.properties.get(_APP + app, -1))

    def files(self, part: str = ROWS) -> list[DataFile]:
        table = self.table()
        if table is None or part != ROWS:
            return []
        return [
            DataFile(path_of(each.file.file_path), each.file.record_count,
                     each.file.file_size_in_bytes)
            for each in table.scan().plan_files()
        ]  # fmt: skip

    def _commit(
        self,
        key: CommitKey,
        adds: Sequence[DataFile],
        removes: Sequence[DataFile],
        bases: Sequence[Basis],
    ) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        if self.version_of(key.app) >= key.version:
            return False
        present = self.files() if bases else ()
        for basis in bases:
            basis.check(present)
        check_staged(adds, real_runtime().files)
        for attempt in range(_ATTEMPTS):
            table = self.table() or self._create(adds)
            if int(table.properties.get(_APP + key.app, -1)) >= key.version:
                return False
            try:
                self._try(table, key, adds, removes)
                return True
            except CommitFailedException as error:
                if attempt == _ATTEMPTS - 1:
                    raise TableConflict(f"{self.path}: {error}") from error
        raise AssertionError

    def _try(
        self, table: Table, key: CommitKey, adds: Sequence[DataFile], removes: Sequence[DataFile]
    ) -> None:
        from pyiceberg.io.pyarrow import parquet_files_to_data_files

        if adds:
            with table.update_schema() as update:
                update.union_by_name(_schema(adds))
        tasks = table.scan().plan_files() if removes else ()
        live = {path_of(task.file.file_path): task.file for task in tasks}
        for each in removes:
            if each.path not in live:
                raise TableConflict(f"{self.path}: another commit took {each.path} away")
        noted = {_APP + key.app: str(key.version)}
        self._reached("table: before the commit")
        with table.transaction() as transaction:
            mapping = transaction.table_metadata.schema().name_mapping.model_dump_json()
            transaction.set_properties({**noted, "schema.name-mapping.default": mapping})
            if adds or removes:
                snapshot = transaction.update_snapshot(snapshot_properties=noted)
                producer = snapshot.overwrite() if removes else snapshot.fast_append()
                with producer as change:
                    uris = iter([f"file://{each.path}" for each in adds])
                    metadata = transaction.table_metadata
                    for file in parquet_files_to_data_files(table.io, metadata, uris):
                        change.append_data_file(file)
                    for each in removes:
                        change.delete_data_file(live[each.path])
        self._reached("table: after the commit")

    def table(self) -> Table | None:
        """Return the table after its last commit, or None before the first one."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None

    def _create(self, adds: Sequence[DataFile]) -> Table:
        if not adds:
            raise ProjectError(f"{self.path}: an Iceberg table needs a row to be made")
        self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        try:
            table = self._catalog.create_table_if_not_exists(
                self._name, schema=_schema(adds), location=f"file://{self.path}"
            )
        except TypeError as error:
            raise ProjectError(f"{self.path}: {error}") from error
        if self._partition_by and not table.spec().fields:
            with table.update_spec() as update:
                for name in self._partition_by:
                    update.add_identity(name)
        return self.table() or table


def _schema(adds: Sequence[DataFile]) -> Any:
    return pa.unify_schemas([pq.read_schema(each.path) for each in adds])


def path_of(uri: str) -> str:
    """Return the path of a file that a table names."""
    return uri.removeprefix("file://")
