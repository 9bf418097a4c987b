"""The class of each kind of schemas, loaded on its first use."""

from __future__ import annotations

from embedlog.testing.registry.schemas.kinds import ParsedSchema


def kind_of(name: str) -> type[ParsedSchema]:
    """Return the class of a kind. Requires: the name is one of KINDS."""
    if name == "AVRO":
        from embedlog.testing.registry.schemas.avro_schema import AvroSchema

        return AvroSchema
    if name == "JSON":
        from embedlog.testing.registry.schemas.json_schema import JsonSchema

        return JsonSchema
    from embedlog.testing.registry.schemas.protobuf_schema import ProtobufSchema

    return ProtobufSchema
