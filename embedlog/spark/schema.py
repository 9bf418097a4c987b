"""The columns of a read: those of Spark's Kafka source, or a choice of them."""

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
"""Name -> type, in the order of Spark's Kafka source; `headers` only when asked for."""


def records_ddl(*, headers: bool) -> str:
    """The schema of records as DDL."""
    return ", ".join(
        f"{name} {kind}" for name, kind in COLUMNS.items() if headers or name != "headers"
    )


def check_records_schema(schema: StructType) -> None:
    """Refuse a user's schema that is no choice of the columns.

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
    """The `pyarrow.Schema` that Spark expects of a reader with this schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
