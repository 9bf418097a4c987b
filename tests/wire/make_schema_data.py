"""Makes tests/wire/kafka-schemas.json.gz from Kafka's own schema files.

    python tests/wire/make_schema_data.py DIRECTORY

DIRECTORY holds one directory per release line ("4.4", "4.0.0-SNAPSHOT") with the message schemas of
Kafka's modules, as JSON with `//` comments. The data file keeps the wire format of each message,
version by version:

    {release: {message: {"api": ..., "kind": ..., "flexible": ..., "listeners": [...],
                         "versions": [[first, last, [field, ...]], ...]}}}

A field is [path, kind, nullable, tag, default, ignorable, length in old form]; neighbouring
versions with the same fields share one entry.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

DATA_FILE = Path(__file__).parent / "kafka-schemas.json.gz"
VERSION_END = 1000


def describe(directory: Path) -> dict[str, Any]:
    """Return the data of all releases below `directory`."""
    releases = sorted(path for path in directory.iterdir() if path.is_dir())
    return {release.name: describe_release(release) for release in releases}


def describe_release(directory: Path) -> dict[str, Any]:
    messages = {}
    for path in sorted(directory.glob("*/*.json")):
        lines = path.read_text().splitlines()
        text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
        schema = json.loads(text)
        if schema["validVersions"] != "none":
            messages[schema["name"]] = describe_message(schema)
    return messages


def describe_message(schema: dict[str, Any]) -> dict[str, Any]:
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    versions: list[list[Any]] = []
    for version in range_of(schema["validVersions"]):
        fields = list(describe_fields(schema["fields"], version, structs, ""))
        if versions and versions[-1][2] == fields:
            versions[-1][1] = version
        else:
            versions.append([version, version, fields])
    return {
        "api": schema.get("apiKey"),
        "kind": schema["type"],
        "flexible": schema["flexibleVersions"],
        "listeners": schema.get("listeners", []),
        "versions": versions,
    }


def describe_fields(
    fields: list[dict[str, Any]], version: int, structs: dict[str, Any], above: str
) -> Any:
    for field in fields:
        if version not in range_of(field.get("versions") or field["taggedVersions"]):
            continue
        kind = field["type"]
        path = above + snake_case(field["name"])
        is_tagged = version in range_of(field.get("taggedVersions"))
        yield [
            path,
            kind,
            version in range_of(field.get("nullableVersions")),
            field["tag"] if is_tagged else None,
            default_of(field),
            str(field.get("ignorable", False)).lower() == "true",
            field.get("flexibleVersions") == "none",
        ]
        base = kind.removeprefix("[]")
        nested = field.get("fields") or structs.get(base)
        if nested:
            inner = path + ("[]." if kind.startswith("[]") else ".")
            yield from describe_fields(nested, version, structs, inner)


def default_of(field: dict[str, Any]) -> Any:
    kind, default = field["type"], field.get("default")
    if "default" in field and default in (None, "null"):
        return None
    if kind.startswith("[]"):
        return []
    if kind == "bool":
        return str(default).lower() == "true"
    if kind == "records":
        return None
    if kind in ("string", "bytes"):
        return default or ""
    if kind == "uuid" or kind[0].isupper():
        return kind if kind == "uuid" else "struct"
    return float(default or 0) if kind == "float64" else int(str(default or 0), 0)


def range_of(text: str | None) -> range:
    if text is None or text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), VERSION_END)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def main() -> None:
    text = json.dumps(describe(Path(sys.argv[1])), separators=(",", ":"), sort_keys=True)
    DATA_FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
