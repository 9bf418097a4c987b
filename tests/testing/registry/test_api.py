"""Confluent's HTTP API, path by path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from embedlog.testing.registry.settings import LEVELS
from tests.testing.registry.calls import BROKEN, RECORD, WIDER, Calls


def test_a_subject_from_its_first_version_to_its_last(call: Calls) -> None:
    assert call("GET", "/subjects") == []
    assert call.register("s", RECORD) == 1
    assert call.register("s", WIDER) == 2
    assert call.register("s", RECORD) == 1  # the version that has it already
    assert call("GET", "/subjects") == ["s"]
    assert call("GET", "/subjects/s/versions") == [1, 2]
    found = call("GET", "/subjects/s/versions/1")
    assert (found["subject"], found["version"], found["id"]) == ("s", 1, 1)
    assert found["schema"] == RECORD
    assert found["schemaType"] == "AVRO"
    for latest in ("latest", "-1", "2"):
        assert call("GET", f"/subjects/s/versions/{latest}")["id"] == 2
    assert call("GET", "/subjects/s/versions/1/schema") == json.loads(RECORD)


def test_equal_content_has_one_id_in_all_subjects(call: Calls) -> None:
    spaced = json.dumps(json.loads(RECORD), indent=4)
    assert call.register("a", RECORD) == call.register("b", spaced) == 1
    assert call("GET", "/schemas/ids/1/subjects") == ["a", "b"]
    assert call("GET", "/schemas/ids/1/versions") == [
        {"subject": "a", "version": 1},
        {"subject": "b", "version": 1},
    ]
    guid = call("GET", "/schemas/ids/1")["guid"]
    assert call("GET", f"/schemas/guids/{guid}")["schema"] == RECORD
    assert call("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}]


def test_a_schema_is_found_by_id(call: Calls) -> None:
    call.register("s", RECORD)
    assert call("GET", "/schemas/ids/1")["schema"] == RECORD
    assert call("GET", "/schemas/ids/1?fetchMaxId=true")["maxId"] == 1
    assert call("GET", "/schemas/ids/1/schema") == json.loads(RECORD)
    assert call("GET", "/schemas/ids/2") == 40403
    assert call("GET", "/schemas/ids/x") == 40403
    assert call("GET", "/schemas/ids/" + "9" * 5000) == 40403


def test_lookup_finds_the_version_of_a_schema(call: Calls) -> None:
    assert call("POST", "/subjects/s", {"schema": RECORD}) == 40401
    call.register("s", RECORD)
    assert call("POST", "/subjects/s", {"schema": RECORD})["version"] == 1
    assert call("POST", "/subjects/s", {"schema": WIDER}) == 40403
    call("DELETE", "/subjects/s/versions/1")
    assert call("POST", "/subjects/s", {"schema": RECORD}) == 40401
    assert call("POST", "/subjects/s?deleted=true", {"schema": RECORD})["version"] == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/subjects/none/versions", 40401),
        ("/subjects/none/versions/1", 40401),
        ("/subjects/s/versions/2", 40402),
        ("/subjects/s/versions/0", 42202),
        ("/subjects/s/versions/newest", 42202),
        ("/subjects/s/versions/" + "9" * 5000, 42202),
        ("/subjects/a%00b/versions", 42208),
        ("/subjects/s/versions/1/nothing", 404),
        ("/nothing", 404),
        ("/subjects?limit=x", 422),
    ],
)
def test_what_does_not_exist_has_its_code(call: Calls, path: str, code: int) -> None:
    call.register("s", RECORD)
    assert call("GET", path) == code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"schema": ""}, 42201),
        ({"schema": "{"}, 42201),
        ({"schema": 3}, 42201),
        ({"schema": RECORD, "schemaType": "XML"}, 42201),
        ({"schema": RECORD, "references": [{"name": "x"}]}, 42201),
        ({"schema": RECORD, "metadata": 3}, 400),
        ({"schema": RECORD, "id": "x"}, 400),
        ([], 400),
        (b"", 422),
        (b"{", 400),
        (b"[" * 100_000, 400),
        ({"schema": "[" * 100_000}, 42201),
    ],
)
def test_a_body_that_is_no_schema_is_refused(call: Calls, body: Any, code: int) -> None:
    assert call("POST", "/subjects/s/versions", body) == code


def test_methods_and_content_types_are_checked(call: Calls) -> None:
    assert call("PUT", "/subjects") == 405
    body = {"schema": RECORD}
    assert call("POST", "/subjects/s/versions", body, Content_Type="text/plain") == 415
    assert call("GET", "/subjects", Accept="text/html") == 406
    assert call.raw("GET", "/subjects")[1]["content-type"] == (
        "application/vnd.schemaregistry.v1+json"
    )
    answer = call.raw("GET", "/subjects", Accept="application/json; q=1, text/html")
    assert answer[1]["content-type"] == "application/json"


# Deletion


def test_a_soft_deletion_hides_and_a_permanent_one_forgets(call: Calls) -> None:
    call.register("s", RECORD)
    call.register("s", WIDER)
    assert call("DELETE", "/subjects/s?permanent=true") == 40405
    assert call("DELETE", "/subjects/s") == [1, 2]
    assert call("DELETE", "/subjects/s") == 40404
    assert call("GET", "/subjects") == []
    assert call("GET", "/subjects?deleted=true") == ["s"]
    assert call("GET", "/subjects/s/versions") == 40401
    assert call("GET", "/subjects/s/versions?deleted=true") == [1, 2]
    assert call("GET", "/subjects/s/versions/1?deleted=true")["deleted"] is True
    assert call("GET", "/schemas/ids/1")["schema"] == RECORD  # readers of old records need it
    assert call("GET", "/schemas/ids/1/subjects") == []
    assert call("DELETE", "/subjects/s?permanent=true") == [1, 2]
    assert call("DELETE", "/subjects/s?permanent=true") == 40401
    assert call("GET", "/schemas/ids/1") == 40403


def test_a_deleted_schema_comes_back_with_its_id_as_a_new_version(call: Calls) -> None:
    call.register("s", RECORD)
    call("DELETE", "/subjects/s")
    answer = call("POST", "/subjects/s/versions", {"schema": RECORD})
    assert (answer["id"], answer["version"]) == (1, 2)
    assert call("GET", "/subjects/s/versions?deletedOnly=true") == [1]


def test_versions_are_deleted_one_by_one(call: Calls) -> None:
    call.register("s", RECORD)
    call.register("s", WIDER)
    assert call("DELETE", "/subjects/s/versions/1?permanent=true") == 40407
    assert call("DELETE", "/subjects/s/versions/1") == 1
    assert call("DELETE", "/subjects/s/versions/1") == 40406
    assert call("GET", "/subjects/s/versions") == [2]
    assert call("DELETE", "/subjects/s/versions/1?permanent=true") == 1
    assert call("DELETE", "/subjects/s/versions/latest") == 2
    assert call("DELETE", "/subjects/s/versions/7") == 40402


@pytest.mark.parametrize("path", ["/subjects/s", "/subjects/s/versions/1"])
def test_the_settings_of_a_subject_end_with_its_last_version(call: Calls, path: str) -> None:
    call.register("s", RECORD)
    call("PUT", "/config/s", {"compatibility": "NONE"})
    call("PUT", "/mode/s", {"mode": "READWRITE"})
    call("DELETE", path)
    assert call("GET", "/config/s") == 40408
    assert call("GET", "/mode/s") == 40409


# References


def test_a_schema_may_refer_to_others(call: Calls) -> None:
    call.register("inner", '{"type":"record","name":"Inner","fields":[]}')
    outer = '{"type":"record","name":"Outer","fields":[{"name":"i","type":"Inner"}]}'
    uses = [{"name": "Inner", "subject": "inner", "version": 1}]
    assert call.register("outer", outer) == 42201
    missing = [{"name": "Inner", "subject": "inner", "version": 9}]
    assert call.register("outer", outer, references=missing) == 42201
    assert call.register("outer", outer, references=uses) == 2
    assert call("GET", "/subjects/outer/versions/1")["references"] == uses
    assert call("GET", "/subjects/inner/versions/1/referencedby") == [2]
    assert call("DELETE", "/subjects/inner") == 42206
    call("DELETE", "/subjects/outer")
    assert call("DELETE", "/subjects/inner") == [1]


# Compatibility


def test_an_incompatible_schema_is_refused_with_the_reason(call: Calls) -> None:
    call.register("s", RECORD)
    status, _, text = call.raw("POST", "/subjects/s/versions", {"schema": BROKEN})
    assert status == 409
    message = json.loads(text)["message"]
    assert 'incompatible with an earlier schema for subject "s"' in message
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in message
    assert "{oldSchemaVersion: 1}" in message
    assert "{compatibility: 'BACKWARD'}" in message


ADDED = WIDER.replace(',"default":0', "")
EMPTY = '{"type":"record","name":"R","fields":[]}'
ALLOWED = {
    # A new field without a default: old readers skip it, new readers lack it in old data.
    ADDED: {"NONE", "FORWARD", "FORWARD_TRANSITIVE"},
    EMPTY: {"NONE", "BACKWARD", "BACKWARD_TRANSITIVE"},
    WIDER: set(LEVELS),
    BROKEN: {"NONE"},
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("schema", ALLOWED)
def test_each_level_allows_its_changes(call: Calls, level: str, schema: str) -> None:
    call.register("s", RECORD)
    assert call("PUT", "/config/s", {"compatibility": level.lower()})
    path = "/compatibility/subjects/s/versions"
    for target in (path, f"{path}/latest", f"{path}/1"):
        found = call("POST", f"{target}?verbose=true", {"schema": schema})
        assert found["is_compatible"] == (level in ALLOWED[schema])
        assert bool(found["messages"]) == (level not in ALLOWED[schema])
    assert (call.register("s", schema) == 409) == (level not in ALLOWED[schema])


@pytest.mark.parametrize(("level", "code"), [("BACKWARD", 3), ("BACKWARD_TRANSITIVE", 409)])
def test_a_transitive_level_compares_with_all_versions(call: Calls, level: str, code: int) -> None:
    """The last schema reads data of the second, whose default it needs for data of the first."""
    call.register("s", RECORD)
    call.register("s", WIDER)
    call("PUT", "/config", {"compatibility": level})
    assert call.register("s", ADDED) == code


def test_compatibility_without_versions(call: Calls) -> None:
    path = "/compatibility/subjects/s/versions"
    assert call("POST", f"{path}/latest", {"schema": RECORD}) == {"is_compatible": True}
    assert call("POST", f"{path}/1", {"schema": RECORD}) == 40402
    call.register("s", RECORD)
    assert call("POST", f"{path}/2", {"schema": RECORD}) == 40402
    assert call("POST", f"{path}/1", {"schema": "{"}) == 42201


def test_the_type_of_schema_is_part_of_compatibility(call: Calls) -> None:
    call.register("s", RECORD)
    assert call.register("s", '{"type":"object"}', schemaType="JSON") == 409


# Settings


def test_the_configuration_of_a_subject_comes_before_the_one_for_all(call: Calls) -> None:
    assert call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert call("GET", "/config/s") == 40408
    assert call("GET", "/config/s?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert call("PUT", "/config", {"compatibility": "FULL"}) == {"compatibility": "FULL"}
    assert call("PUT", "/config/s", {"normalize": True}) == {"normalize": True}
    own = {"normalize": True, "compatibilityLevel": "BACKWARD"}  # nothing of the one for all
    assert call("GET", "/config/s") == own
    assert call("GET", "/config/s?defaultToGlobal=true") == own
    assert call("GET", "/config/t?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    assert call("PUT", "/config/s", {"compatibility": "SOMETIMES"}) == 42203
    assert call("PUT", "/config/s", {"normalize": "yes"}) == 400
    assert call("DELETE", "/config/s") == own
    assert call("DELETE", "/config/s") == 40401
    call("DELETE", "/config")
    assert call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


def test_normalize_makes_one_schema_of_equal_ones(call: Calls) -> None:
    one = '{"type":"string","b":1,"a":2}'
    other = '{"type":"string","a":2,"b":1}'
    assert call.register("x", one) != call.register("x", other)
    path = "/subjects/y/versions?normalize=true"
    first = call("POST", path, {"schema": one})
    assert call("POST", path, {"schema": other}) == first
    call("PUT", "/config/z", {"normalize": True})
    assert call.register("z", one) == first["id"]
    assert call("POST", "/subjects/z", {"schema": other})["id"] == first["id"]


def test_an_alias_stands_for_its_subject(call: Calls) -> None:
    call.register("s", RECORD)
    call("PUT", "/config/other", {"alias": "s"})
    assert call("GET", "/subjects/other/versions/latest")["subject"] == "s"


def test_modes(call: Calls) -> None:
    assert call("GET", "/mode") == {"mode": "READWRITE"}
    assert call("GET", "/mode/s") == 40409
    assert call("GET", "/mode/s?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert call("PUT", "/mode/s", {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert call.register("s", RECORD) == 42205
    assert call("DELETE", "/subjects/s") == 42205
    assert call("PUT", "/config/s", {"compatibility": "NONE"}) == 42205
    assert call("DELETE", "/config/s") == 42205
    assert call.register("t", RECORD) == 1
    assert call("PUT", "/mode/s", {"mode": "SHUT"}) == 42204
    assert call("DELETE", "/mode/s") == {"mode": "READONLY"}
    assert call("DELETE", "/mode/s") == 40401
    assert call.register("s", RECORD) == 1


def test_the_override_for_all_reaches_every_place(call: Calls) -> None:
    call("PUT", "/mode", {"mode": "READONLY"})
    assert call.register("%3A.ctx%3As", RECORD) == 1  # contexts have modes of their own
    call("PUT", "/mode/s", {"mode": "READWRITE"})
    assert call.register("s", RECORD) == 1
    call("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    assert call.register("s", WIDER) == call.register("%3A.ctx%3As", WIDER) == 42205


def test_an_import_brings_its_ids_and_versions(call: Calls) -> None:
    assert call.register("s", RECORD, id=40, version=7) == 42205
    assert call("PUT", "/mode", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert call.register("s", RECORD, id=40, version=7) == 40
    assert call("GET", "/subjects/s/versions") == [7]
    assert call.register("s", WIDER, id=40) == 42205
    assert call.register("s", WIDER) == 42205
    call("PUT", "/mode", {"mode": "READWRITE"})
    assert call.register("s", WIDER) == 41
    assert call("PUT", "/mode", {"mode": "IMPORT"}) == 42205
    assert call("PUT", "/mode?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}


# Metadata, contexts and the rest


def test_metadata_and_rules_are_part_of_a_version(call: Calls) -> None:
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "expr": "true"}]}
    first = {"schema": RECORD, "metadata": {"properties": {"v": "1"}}, "ruleSet": rules}
    assert call("POST", "/subjects/s/versions", first)["version"] == 1
    second = {"schema": RECORD, "metadata": {"properties": {"v": "2"}}}
    assert call("POST", "/subjects/s/versions", second)["version"] == 2
    found = call("GET", "/subjects/s/versions/2")
    assert found["metadata"] == {"properties": {"v": "2"}}
    assert found["ruleSet"] == rules  # of the version before, as none came
    assert call("GET", "/subjects/s/metadata?key=v&value=1")["version"] == 1
    assert call("GET", "/subjects/s/metadata?key=v&value=3") == 40403
    assert call("POST", "/subjects/s", {"schema": RECORD})["version"] == 2


def test_defaults_and_overrides_of_metadata(call: Calls) -> None:
    config = {
        "defaultMetadata": {"properties": {"owner": "nobody", "team": "x"}, "sensitive": ["a"]},
        "overrideMetadata": {"properties": {"checked": "yes"}, "tags": {"f": ["PII"]}},
    }
    call("PUT", "/config/s", config)
    metadata = {
        "properties": {"owner": "me", "checked": "no"},
        "sensitive": ["b", "a"],
        "tags": {"f": ["OLD"]},
    }
    call.register("s", RECORD, metadata=metadata)
    assert call("GET", "/subjects/s/versions/1")["metadata"] == {
        "properties": {"owner": "me", "team": "x", "checked": "yes"},
        "sensitive": ["a", "b"],
        "tags": {"f": ["OLD", "PII"]},
    }


def test_a_compatibility_group_limits_the_comparison(call: Calls) -> None:
    call("PUT", "/config/s", {"compatibilityGroup": "major"})
    call.register("s", RECORD, metadata={"properties": {"major": "1"}})
    assert call.register("s", BROKEN, metadata={"properties": {"major": "1"}}) == 409
    assert call.register("s", BROKEN, metadata={"properties": {"major": "2"}}) == 2


def test_contexts_have_their_own_subjects_and_ids(call: Calls) -> None:
    call.register("s", RECORD)
    assert call.register("%3A.ctx%3As", WIDER) == 1
    assert call("GET", "/contexts") == [".", ".ctx"]
    assert call("GET", "/subjects") == [":.ctx:s", "s"]
    assert call("GET", "/subjects?subjectPrefix=%3A.ctx%3A") == [":.ctx:s"]
    assert call("GET", "/subjects?subjectPrefix=s") == ["s"]
    assert call("GET", "/contexts/.ctx/subjects/s/versions/1")["schema"] == WIDER
    assert call("GET", "/schemas/ids/1?subject=%3A.ctx%3A")["schema"] == WIDER
    assert call("GET", "/schemas/ids/1")["schema"] == RECORD
    call("PUT", "/config", {"compatibility": "NONE"})
    assert call.register("%3A.ctx%3As", BROKEN) == 409
    call("PUT", "/config", {"compatibility": "FULL"})
    call("PUT", "/config/%3A.ctx%3A", {"compatibility": "NONE"})
    assert call.register("%3A.ctx%3As", BROKEN) == 2
    assert call.register("s", BROKEN) == 409


def test_the_subject_of_a_reader_leads_to_the_context_of_an_id(call: Calls) -> None:
    call.register("s", RECORD)
    call.register("%3A.x%3Aonly", BROKEN)
    call.register("%3A.x%3As", WIDER)

    def text(number: int, hint: str) -> Any:
        found = call("GET", f"/schemas/ids/{number}?subject={hint}")
        return found["schema"] if isinstance(found, dict) else found

    assert text(1, "s") == text(1, "other") == RECORD
    assert text(1, "only") == BROKEN
    assert text(2, "s") == WIDER
    assert text(2, "other") == 40403
    assert text(1, "%3A.x%3A") == BROKEN
    assert text(1, "%3A.x%3As") == 40403
    assert call("GET", "/schemas/ids/1/subjects?subject=only") == [":.x:only"]


def test_a_name_may_hold_a_slash(call: Calls) -> None:
    call.register("a%2Fb", RECORD)
    assert call("GET", "/subjects") == ["a/b"]
    assert call("GET", "/subjects/a%2Fb/versions") == [1]


def test_lists_of_schemas_and_types(call: Calls) -> None:
    call.register("a", RECORD)
    call.register("a", WIDER)
    call.register("b", '{"type":"object"}', schemaType="JSON")
    rows = [(row["subject"], row["version"]) for row in call("GET", "/schemas")]
    assert rows == [("a", 1), ("a", 2), ("b", 1)]
    assert len(call("GET", "/schemas?latestOnly=true")) == 2
    assert [row["version"] for row in call("GET", "/schemas?subjectPrefix=a&offset=1")] == [2]
    assert len(call("GET", "/schemas?limit=1")) == 1
    assert len(call("GET", "/schemas?limit=0")) == 3
    assert call("GET", "/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert call("GET", "/") == {}
    assert "version" in call("GET", "/v1/metadata/version")
    assert "scope" in call("GET", "/v1/metadata/id")
