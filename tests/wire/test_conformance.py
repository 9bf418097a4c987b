"""Our declarations equal Kafka's: every field of every version, in order, form and default.

`make_schema_data.py` made the data file from Kafka's schemas of two release lines. If they
disagree, the newer line counts for the versions that it lists, the older one for dropped versions.
If EMBEDLOG_KAFKA_SCHEMAS names a directory of schemas, they are compared as well.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import os
import pkgutil
from pathlib import Path
from typing import Any

import wire
import wire.schemas
from wire import registry
from wire.layout import Layout, Slot, layout
from wire.schema import DEFAULT, Field

NEWEST, OLDER = "4.4", "4.0.0-SNAPSHOT"

KINDS = {"boolean": "bool", "bytes_": "bytes", "records_": "records"}

RENAMED = {
    # Kafka's name in 4.4 -> the older name of the same API key.
    "ListConfigResourcesRequest": "ListClientMetricsResourcesRequest",
    "ListConfigResourcesResponse": "ListClientMetricsResourcesResponse",
}

STRUCTS_RENAMED = {
    # Our name -> Kafka's, for two structs of one file that have the same name in Kafka.
    "RequestEntryData": "EntryData",
    "ResponseEntryData": "EntryData",
    "RequestTopicData": "TopicData",
    "ResponseTopicData": "TopicData",
    "RequestPartitionData": "PartitionData",
    "ResponsePartitionData": "PartitionData",
    "CurrentTaskIds": "TaskIds",
    "TargetTaskIds": "TaskIds",
    "LeaderChangeVoter": "Voter",
}

NOT_DECLARED = {
    "DefaultPrincipalData",
    "QuorumStateData",
    "RemoteLogSegmentMetadataRecord",
    "RemoteLogSegmentMetadataSnapshotRecord",
    "RemoteLogSegmentMetadataUpdateRecord",
    "RemotePartitionDeleteMetadataRecord",
}
"""Messages for Kafka's own controllers, tiered storage and forwarding only."""


def load_committed() -> dict[str, Any]:
    path = Path(__file__).parent / "kafka-schemas.json.gz"
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return data


def load_raw() -> dict[str, Any] | None:
    directory = os.environ.get("EMBEDLOG_KAFKA_SCHEMAS")
    if directory is None:
        return None
    path = Path(__file__).parent / "make_schema_data.py"
    spec = importlib.util.spec_from_file_location("make_schema_data", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.describe(Path(directory))


def declared_messages() -> dict[str, type[Any]]:
    found = {}
    for module in pkgutil.iter_modules(wire.schemas.__path__):
        for cls in vars(importlib.import_module(f"wire.schemas.{module.name}")).values():
            if isinstance(cls, type) and getattr(cls, "__declaration__", None) is not None:
                assert cls.__name__ not in found, cls
                found[cls.__name__] = cls
    return found


MESSAGES = declared_messages()
COMMITTED = load_committed()


def versions_of(message: dict[str, Any]) -> dict[int, list[Any]]:
    return {
        version: fields
        for first, last, fields in message["versions"]
        for version in range(first, last + 1)
    }


def dump(part: Layout) -> list[list[Any]]:
    """Describe a layout as `make_schema_data` describes a schema."""
    rows = []
    slots = {slot.name: slot for slot in part.slots + part.tagged}
    for field in part.cls.__fields__:
        if field.name in slots:
            rows += dump_slot(slots[field.name])
    return rows


def dump_slot(slot: Slot) -> list[list[Any]]:
    kind, inner = kind_of(slot), slot
    if slot.element is not None:
        kind, inner = "[]" + kind_of(slot.element), slot.element
    field = slot.field
    row = [
        slot.path,
        kind,
        slot.nullable,
        slot.tag,
        default_of(field),
        field.ignorable,
        field.old_form,
    ]
    return [row, *(dump(inner.layout) if inner.layout is not None else [])]


def kind_of(slot: Slot) -> str:
    if slot.layout is not None:
        return STRUCTS_RENAMED.get(slot.layout.cls.__name__, slot.layout.cls.__name__)
    return KINDS.get(slot.kind, slot.kind)


def default_of(field: Field) -> Any:
    if field.default is DEFAULT:
        return [] if field.struct is None else "struct"
    if field.kind == "uuid":
        assert field.default == bytes(16), field.name
        return "uuid"
    return field.default.decode() if isinstance(field.default, bytes) else field.default


def without_ignorable(rows: list[list[Any]]) -> list[list[Any]]:
    return [[*row[:5], row[6]] for row in rows]


def check_against(data: dict[str, Any]) -> int:
    """Compare every declared message with the data; return the number of versions compared."""
    compared = 0
    for name, cls in MESSAGES.items():
        declared = wire.declaration(cls)
        newest = data[NEWEST][name]
        older = data[OLDER].get(RENAMED.get(name, name))
        expected = versions_of(newest)
        assert declared.flexible == newest["flexible"], name
        key = declared.record_type if declared.kind == "data" else declared.api
        assert key == newest["api"], name
        expected_kind = "data" if newest["kind"].startswith("coordinator") else newest["kind"]
        assert declared.kind == expected_kind, name
        dropped = {}
        if older is not None and declared.record_type is None:
            dropped = {v: f for v, f in versions_of(older).items() if v not in expected}
        ours = range(declared.first_version, declared.last_version + 1)
        assert sorted([*expected, *dropped]) == list(ours), name
        for version in ours:
            rows = dump(layout(cls, version))
            if version in expected:
                assert rows == expected[version], (name, version)
            else:
                # Only the newest line has the fields that may be dropped at a version.
                assert without_ignorable(rows) == without_ignorable(dropped[version]), (
                    name,
                    version,
                )
            compared += 1
    return compared


def test_declarations_equal_kafkas_schemas() -> None:
    assert check_against(COMMITTED) >= 700


def test_declarations_equal_the_raw_schema_files() -> None:
    raw = load_raw()
    # Without the directory use the committed data, which was made from such files.
    assert check_against(raw or COMMITTED) >= 700
    assert raw is None or raw == COMMITTED


def test_everything_clients_and_coordinators_read_is_declared() -> None:
    missing = set()
    for name, message in COMMITTED[NEWEST].items():
        request = COMMITTED[NEWEST].get(name.removesuffix("Response") + "Request", message)
        if message["kind"] in ("request", "response") and "broker" not in request["listeners"]:
            assert name not in MESSAGES
        elif name not in MESSAGES:
            missing.add(name)
    assert missing == NOT_DECLARED


def test_old_versions_that_kafka_4_dropped_are_declared() -> None:
    assert wire.valid_versions(0) == (0, 13)
    assert wire.valid_versions(1) == (0, 18)
    assert wire.valid_versions(2) == (0, 11)
    assert wire.valid_versions(11) == (0, 9)


def test_registry_repeats_the_declarations() -> None:
    for api_key in registry.API_KEYS:
        flexible = registry.FIRST_FLEXIBLE[api_key]
        for cls in (wire.request_class(api_key), wire.response_class(api_key)):
            declared = wire.declaration(cls)
            first, last = declared.first_version, declared.last_version
            assert declared.api == api_key, cls
            assert wire.valid_versions(api_key) == (first, last), cls
            for version in range(first, last + 1):
                assert declared.is_flexible(version) == (version >= flexible), (cls, version)
            assert first <= wire.LATEST[api_key] <= last, cls


def test_only_init_producer_id_ends_in_an_unstable_version() -> None:
    unstable = [key for key in registry.API_KEYS if wire.LATEST[key] != wire.valid_versions(key)[1]]
    assert unstable == [22]
