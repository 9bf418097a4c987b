"""The columns of a read: all columns of Spark's Kafka source, or some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.spark.errors import IllegalArgument

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""Name -> type, in the order of Spark's Kafka source; `headers` only on request."""


def records_ddl(*, headers: bool) -> str:
    """Return the schema of records as DDL."""
    return ", ".join(
        f"{name} {kind}" for name, kind in COLUMNS.items() if headers or name != "headers"
    )


def check_records_schema(schema: StructType) -> None:
    """Check that a user's schema has known columns only.

    Raises:
        IllegalArgument: a column is unknown, or of another type.
    """
    for field in schema.fields:
        expected = COLUMNS.get(field.name)
        found = field.dataType.simpleString()
        if expected is None:
            raise IllegalArgument(
                f"no column {field.name!r} in a read of records: there are {', '.join(COLUMNS)}"
            )
        if found != expected:
            raise IllegalArgument(f"column {field.name} is {expected}, not {found}")


def arrow_schema(schema: StructType) -> Any:
    """Return the `pyarrow.Schema` that Spark expects of a reader with this schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
