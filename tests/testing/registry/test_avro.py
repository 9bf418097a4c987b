"""Avro schemas: canonical text and compatibility."""

from __future__ import annotations

import pytest

from embedlog.testing.registry.schemas.avro_schema import AvroSchema
from embedlog.testing.registry.schemas.kinds import Referenced, UnreadableSchema


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('"string"', '"string"'),
        ('{"type": "string"}', '"string"'),
        ('{"logicalType": "date", "type": "int"}', '{"type":"int","logicalType":"date"}'),
        ('["null", {"type": "long"}]', '["null","long"]'),
        (
            '{"name": "n.R", "fields": [], "type": "record", "doc": "ü"}',
            '{"type":"record","name":"R","namespace":"n","doc":"ü","fields":[]}',
        ),
        (
            '{"type":"record","namespace":"n","name":"R","aliases":["n.Q","m.Q"],"x":1,"fields":['
            '{"type":"n.R","name":"a","order":"ascending","default":null,"doc":"d"},'
            '{"type":{"type":"enum","name":"E","symbols":["A"],"default":"A"},"name":"b",'
            '"order":"ignore","aliases":["c"],"y":2},'
            '{"name":"d","type":{"type":"fixed","size":4,"name":"o.F"}},'
            '{"name":"e","type":"o.F"}]}',
            '{"type":"record","name":"R","namespace":"n","fields":['
            '{"name":"a","type":"R","doc":"d","default":null},'
            '{"name":"b","type":{"type":"enum","name":"E","symbols":["A"],"default":"A"},'
            '"order":"ignore","aliases":["c"],"y":2},'
            '{"name":"d","type":{"type":"fixed","name":"F","namespace":"o","size":4}},'
            '{"name":"e","type":"o.F"}],"x":1,"aliases":["Q","m.Q"]}',
        ),
    ],
)
def test_the_canonical_text_is_the_one_of_avros_java_library(text: str, canonical: str) -> None:
    made = AvroSchema.parse(text, [])
    assert made.canonical == canonical
    assert AvroSchema.parse(canonical, []).canonical == canonical


def test_the_normal_form_sorts_properties_and_aliases() -> None:
    text = '{"type":"record","name":"R","fields":[],"z":1,"a":2,"aliases":["Z","B"]}'
    assert AvroSchema.parse(text, []).normalized() == (
        '{"type":"record","name":"R","fields":[],"a":2,"z":1,"aliases":["B","Z"]}'
    )


def test_types_of_references_keep_their_names() -> None:
    reference = Referenced("n.I", '{"type":"record","name":"I","namespace":"n","fields":[]}')
    text = '{"type":"record","name":"O","namespace":"n","fields":[{"name":"i","type":"n.I"}]}'
    made = AvroSchema.parse(text, [reference])
    assert '"type":"I"' in made.canonical


@pytest.mark.parametrize(
    "text",
    ["", "3", "{}", '"foo"', '{"type":"record"}', '{"type":"record","name":"R","fields":3}',
     '{"type":"record","name":"R","fields":[{"name":"a"}]}', "[1]", "[" * 100_000,
     '{"type":"enum","name":"E","symbols":["A","A"]}', '["int","int"]'],
)  # fmt: skip
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(UnreadableSchema):
        AvroSchema.parse(text, [])


def _record(*fields: str) -> str:
    return f'{{"type":"record","name":"R","fields":[{",".join(fields)}]}}'


INT = '{"name":"a","type":"int"}'


@pytest.mark.parametrize(
    ("new", "old", "kind"),
    [
        (_record(INT), _record(INT), None),
        (_record(INT), _record(), "READER_FIELD_MISSING_DEFAULT_VALUE"),
        (_record('{"name":"a","type":"int","default":1}'), _record(), None),
        (_record(), _record(INT), None),
        (_record('{"name":"a","type":"long"}'), _record(INT), None),
        (_record(INT), _record('{"name":"a","type":"long"}'), "TYPE_MISMATCH"),
        (_record('{"name":"b","aliases":["a"],"type":"int"}'), _record(INT), None),
        (_record().replace("R", "Q"), _record(), "NAME_MISMATCH"),
        ('["null","int"]', '"int"', None),
        ('"int"', '["null","int"]', "TYPE_MISMATCH"),
        ('["int","string"]', '["int","boolean"]', "MISSING_UNION_BRANCH"),
        (
            '{"type":"enum","name":"E","symbols":["A"]}',
            '{"type":"enum","name":"E","symbols":["A","B"]}',
            "MISSING_ENUM_SYMBOLS",
        ),
        (
            '{"type":"fixed","name":"F","size":3}',
            '{"type":"fixed","name":"F","size":4}',
            "FIXED_SIZE_MISMATCH",
        ),
    ],
)
def test_avros_rules_of_resolution_decide(new: str, old: str, kind: str | None) -> None:
    found = AvroSchema.parse(new, []).problems_with(AvroSchema.parse(old, []))
    assert [each.kind for each in found] == ([kind] if kind else [])
