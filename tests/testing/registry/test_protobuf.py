"""Protobuf schemas: grammar, canonical text, both forms, and the rules of compatibility."""

from __future__ import annotations

import pytest

from embedlog.testing.registry.schemas.kinds import Referenced, UnreadableSchema
from embedlog.testing.registry.schemas.protobuf_schema import ProtobufSchema

EVERYTHING = """// A comment.
syntax = "proto3";  /* another */
package a.b;
import public "google/protobuf/timestamp.proto";
import 'other.proto';
option java_package = "x." "y";
option (my.opt).foo = { a: 1 b: { c: "}" } };
message M {
  reserved 5, 7 to 9, 100 to max; reserved "zz", 'y"y';
  option deprecated = true;
  string x = 1 [json_name="X", deprecated = true];
  optional int32 y = 0x2;
  map<string, Sub> m = 3;
  oneof o { Sub s = 4; int32 t = 06 [(v.rules) = {gt: 0}]; }
  message Sub { repeated int32 q = 1 [packed=false]; google.protobuf.Timestamp ts = 2;
    c.Other o = 3; .a.b.M.E e = 4; };
  enum E { option allow_alias = true; A = 0; B = -1; C = -1 [(n) = -3, (f) = 1.5];
    reserved 9 to max; }
  E e = 10;
  string message = 11; string option = 12;
}
enum Top { ZERO = 0; }
service S {
  option deprecated = true;
  rpc Get (M) returns (stream M.Sub) { option deprecated = true; }
  rpc Put (stream M) returns (M);
}
"""
OTHER = Referenced(
    "other.proto",
    'syntax="proto2"; package c; message Other { required int32 a = 1 [default = -5];'
    ' optional group G = 2 { optional string s = 1 [default="q\\"x"]; } extensions 100 to max; }'
    " extend Other { optional int32 e = 100; }",
)
CANONICAL = """syntax = "proto3";
package a.b;

import public "google/protobuf/timestamp.proto";
import "other.proto";

option java_package = "x.y";
option (my.opt).foo = { a : 1 b : { c : "}" } };

message M {
  option deprecated = true;
  reserved 5, 7 to 9, 100 to max;
  reserved "zz", "y\\"y";
  string x = 1 [json_name = "X", deprecated = true];
  optional int32 y = 2;
  map<string, Sub> m = 3;
  oneof o {
    Sub s = 4;
    int32 t = 6 [(v.rules) = { gt : 0 }];
  }
  E e = 10;
  string message = 11;
  string option = 12;
"""


def test_a_text_becomes_canonical() -> None:
    made = ProtobufSchema.parse(EVERYTHING, [OTHER])
    assert made.canonical.startswith(CANONICAL)
    for line in (
        "    google.protobuf.Timestamp ts = 2;",
        "    c.Other o = 3;",
        "    C = -1 [(n) = -3, (f) = 1.5];",
        "    reserved 9 to max;",
        "  rpc Get (M) returns (stream M.Sub) {",
        "  rpc Put (stream M) returns (M);",
    ):
        assert f"\n{line}\n" in made.canonical
    assert ProtobufSchema.parse(made.canonical, [OTHER]).canonical == made.canonical


def test_proto2_has_labels_defaults_groups_and_extensions() -> None:
    made = ProtobufSchema.parse(OTHER.text, [])
    assert made.canonical == (
        'syntax = "proto2";\npackage c;\n\nmessage Other {\n  extensions 100 to max;\n'
        "  required int32 a = 1 [default = -5];\n  optional group G = 2 {\n"
        '    optional string s = 1 [default = "q\\"x"];\n  }\n}\n\n'
        "extend Other {\n  optional int32 e = 100;\n}\n"
    )
    assert ProtobufSchema.parse(made.canonical, []).canonical == made.canonical


def test_an_edition_is_read() -> None:
    text = 'edition = "2023";\n\nmessage M {\n  int32 a = 1;\n}\n'
    assert ProtobufSchema.parse(text, []).canonical == text


def test_a_descriptor_in_base64_is_the_same_schema_as_its_text() -> None:
    made = ProtobufSchema.parse(EVERYTHING, [OTHER])
    coded = made.formatted("serialized")
    assert coded is not None
    other = ProtobufSchema.parse(OTHER.text, []).formatted("serialized")
    assert other is not None
    again = ProtobufSchema.parse(coded, [Referenced(OTHER.name, other)])
    assert again.canonical == made.canonical
    assert made.formatted("nothing") is None


def test_the_normal_form_sorts_imports_fields_and_options() -> None:
    text = (
        'syntax="proto3"; import "other.proto"; import "google/protobuf/any.proto";'
        'option objc_class_prefix="A"; option go_package="B"; message M { int32 b=2; int32 a=1; }'
    )
    assert ProtobufSchema.parse(text, [OTHER]).normalized() == (
        'syntax = "proto3";\n\nimport "google/protobuf/any.proto";\nimport "other.proto";\n\n'
        'option go_package = "B";\noption objc_class_prefix = "A";\n\n'
        "message M {\n  int32 a = 1;\n  int32 b = 2;\n}\n"
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("nonsense", "line 1: expected message"),
        ("message {}", "expected a name, found '{'"),
        ('syntax="proto3";\nmessage A {\n  int32 a = x;\n}', "line 3: expected a number"),
        ('syntax="proto3"; message A { Foo x = 1; }', "Foo"),
        ('syntax="proto3"; message A { int32 x = 1; int32 y = 1; }', "1"),
        ('syntax="proto3"; message A {', "found the end"),
        ('syntax="proto4";', "proto4"),
        ('syntax="proto3"; import "google/protobuf/nothing.proto";', "nothing.proto"),
        ('syntax="proto3"; import "missing.proto";', "missing.proto"),
        ('syntax="proto3"; message A { int32 "', "unexpected"),
        ('syntax="proto3"; option x = { a: ', "expected '}'"),
    ],
)
def test_a_text_that_is_no_schema_is_refused_with_the_place(text: str, part: str) -> None:
    with pytest.raises(UnreadableSchema, match=".") as caught:
        ProtobufSchema.parse(text, [])
    assert part in str(caught.value)


def _file(fields: str, package: str = "p", syntax: str = "proto3") -> ProtobufSchema:
    return ProtobufSchema.parse(
        f'syntax="{syntax}"; package {package}; message M {{ {fields} }}', []
    )


NESTED = "message N { int32 a = 1; } message O { int32 a = 1; }"


@pytest.mark.parametrize(
    ("new", "old", "kind"),
    [
        ("int32 a = 1;", "int32 a = 1;", None),
        ("int32 a = 1; int32 b = 2;", "int32 a = 1;", None),
        ("", "int32 a = 1;", None),
        ("int32 b = 1;", "int32 a = 1;", None),
        ("int64 a = 1;", "int32 a = 1;", None),
        ("bool a = 1;", "uint64 a = 1;", None),
        ("sint32 a = 1;", "int32 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
        ("bytes a = 1;", "string a = 1;", None),
        ("string a = 1;", "int32 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
        (f"N a = 1; {NESTED}", f"int32 a = 1; {NESTED}", "FIELD_KIND_CHANGED"),
        (f"N a = 1; {NESTED}", f"O a = 1; {NESTED}", "FIELD_NAMED_TYPE_CHANGED"),
        ("enum E { Z = 0; } E a = 1;", "int32 a = 1;", None),
        ("enum E { Z = 0; } E a = 1;", "enum E { Z = 0; Y = 1; } E a = 1;", None),
        ("repeated int32 a = 1;", "int32 a = 1;", "FIELD_NUMERIC_LABEL_CHANGED"),
        ("repeated string a = 1;", "string a = 1;", None),
        ("map<string, int32> a = 1;", "map<string, int32> a = 1;", None),
        ("map<string, string> a = 1;", "map<string, int32> a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
        ("map<string, int32> a = 1;", "string a = 1;", "FIELD_KIND_CHANGED"),
        ("", NESTED, "MESSAGE_REMOVED"),
        (NESTED, "", None),
        ("oneof o { int32 a = 1; }", "int32 a = 1;", None),
        ("int32 a = 1;", "oneof o { int32 a = 1; }", None),
        ("oneof o { int32 a = 1; int32 b = 2; }", "oneof o { int32 a = 1; }", None),
        ("oneof o { int32 a = 1; }", "oneof o { int32 a = 1; int32 b = 2; }",
         "ONEOF_FIELD_REMOVED"),
        ("oneof o { int32 a = 1; int32 b = 2; }", "int32 a = 1; int32 b = 2;",
         "MULTIPLE_FIELDS_MOVED_TO_ONEOF"),
        ("oneof o { int32 a = 1; int32 b = 2; }", "oneof o { int32 a = 1; } int32 b = 2;",
         "FIELD_MOVED_TO_EXISTING_ONEOF"),
        ("optional int32 a = 1; optional int32 b = 2;", "int32 a = 1; int32 b = 2;", None),
    ],
)  # fmt: skip
def test_the_new_schema_reads_messages_of_the_old(new: str, old: str, kind: str | None) -> None:
    found = {each.kind for each in _file(new).problems_with(_file(old))}
    assert found == ({kind} if kind else set())


def test_a_oneof_may_be_renamed_without_new_fields() -> None:
    old = _file("string a = 1; oneof o { int32 b = 2; int32 c = 3; }")
    assert not _file("string a = 1; oneof p { int32 b = 2; int32 c = 3; }").problems_with(old)
    found = _file("oneof p { string a = 1; int32 b = 2; int32 c = 3; }").problems_with(old)
    assert [each.kind for each in found] == ["FIELD_MOVED_TO_EXISTING_ONEOF"]


@pytest.mark.parametrize(
    ("package", "body", "kinds"),
    [
        ("x", "message N { int32 a = 1; N n = 2; }", []),
        ("y", "message N { int64 a = 1; N n = 2; }", []),
        ("y", "message N { string a = 1; N n = 2; }",
         ["FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"]),
    ],
)  # fmt: skip
def test_an_imported_message_is_compared_by_its_fields(
    package: str, body: str, kinds: list[str]
) -> None:
    def made(package: str, body: str) -> ProtobufSchema:
        other = Referenced("n.proto", f'syntax="proto3"; package {package}; {body}')
        text = f'syntax="proto3"; import "n.proto"; message M {{ {package}.N n = 1; }}'
        return ProtobufSchema.parse(text, [other])

    old = made("x", "message N { int32 a = 1; N n = 2; }")
    assert [each.kind for each in made(package, body).problems_with(old)] == kinds


def test_required_fields_stay() -> None:
    one, none = (_file(each, syntax="proto2") for each in ("required int32 a = 1;", ""))
    optional = _file("optional int32 a = 1;", syntax="proto2")
    assert [each.kind for each in one.problems_with(none)] == ["REQUIRED_FIELD_ADDED"]
    assert [each.kind for each in none.problems_with(one)] == ["REQUIRED_FIELD_REMOVED"]
    assert [each.kind for each in one.problems_with(optional)] == ["REQUIRED_FIELD_ADDED"]
    assert not optional.problems_with(one)


def test_the_package_stays() -> None:
    found = _file("", package="q").problems_with(_file("", package="p"))
    assert [each.kind for each in found] == ["PACKAGE_CHANGED"]
