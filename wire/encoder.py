"""Generates the encoder of one message class at one version.

The function is flat: it writes nested structs in place, and arrays with loops. It appends pieces
to `out`, for the caller to join. One struct call packs neighbouring fixed-size values, together
with the compact length (below 128) or empty tagged section that follows. For a request of two ints
and a string (see `wire.explain`):

    def encode(m, out, append, buffers):
        b1 = m.name.encode()
        append(pack_ihh(m.id, m.kind, len(b1)))
        append(b1)

Record batches of 1 KiB or more are not copied when the caller gave `buffers`: see `spill`. The
pieces of long nested arrays are joined on the way: see `fold`.
"""

from __future__ import annotations

import struct

from wire.errors import MessageTooLarge, UnsupportedField
from wire.layout import FORMATS, Layout, Slot, has_arrays, has_records
from wire.primitives import ONE_BYTE, STRING_SIZE_MAX, uvarint
from wire.schema import DEFAULT, Field, Payload
from wire.source import Run, Source

BY_REFERENCE_SIZE_MIN = 1024
"""A payload below this size is copied, which costs less than one more buffer in a gather write."""

PIECES_MAX = 8_192
"""Pieces are joined when this many wait. A million unjoined pieces, 6 MB in all, took 90 MB."""


class LimitedPieces(list[Payload]):
    """Pieces of a message of at most `size_max` bytes.

    `fold` checks the limit with each join, so little more than the limit is ever encoded.
    """

    __slots__ = ("_left", "size_max")

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self._left = size_max

    def take(self, size: int) -> None:
        """Subtract `size` joined bytes from the limit.

        Raises:
            MessageTooLarge: the joined bytes exceed the limit.
        """
        self._left -= size
        if self._left < 0:
            raise MessageTooLarge(self.size_max)


def generate_encoder(layout: Layout, name: str, version: int) -> Source:
    """Return the source of `encode(m, out, append, buffers)`."""
    source = Source(
        "def encode(m, out, append, buffers):", f"{name} v{version} -> pieces of bytes."
    )
    encoder = _Encoder(source, layout, name, version)
    if encoder.folds:
        source.line("folded = 0")
    encoder.write_struct(layout, "m")
    encoder.flush()
    return source


class _Encoder:
    def __init__(self, source: Source, layout: Layout, name: str, version: int) -> None:
        self.source = source
        self.message_name = name
        self.version = version
        self.append = "append"
        self.run = Run()
        self.folds = has_arrays(layout) and not has_records(layout)
        """True if the pieces of long arrays are joined on the way: see `fold`. False for
        messages with record batches, because most of their bytes are in the batches."""

    # -- structs -----------------------------------------------------------------------------

    def write_struct(self, layout: Layout, value: str) -> None:
        for field in layout.absent:
            self.refuse_absent(field, value)
        for slot in layout.slots:
            self.write(slot, f"{value}.{slot.name}")
        if layout.flexible:
            self.write_tags(layout, value)

    def refuse_absent(self, field: Field, value: str) -> None:
        """Write the check that raises UnsupportedField for a value that this version would lose."""
        if field.ignorable:
            return
        differs = self.differs_from_default(field, f"{value}.{field.name}")
        unsupported = self.source.constant("UnsupportedField", UnsupportedField)
        with self.source.block(f"if {differs}:"):
            self.source.line(
                f'raise {unsupported}("{self.message_name}", "{field.name}", {self.version})'
            )

    def differs_from_default(self, field: Field, value: str) -> str:
        default = field.default
        if default is None:
            return f"{value} is not None"
        if default is DEFAULT and field.struct is not None:
            shared = self.source.constant(f"DEFAULT_{field.struct.__name__}", field.default_value())
            return f"{value} is not {shared} and {value} != {shared}"
        if default is DEFAULT:
            return f"{value} != []"
        if default is False:
            return value
        return f"{value} != {default!r}"

    def write_tags(self, layout: Layout, value: str) -> None:
        source = self.source
        any_tag = f"{value}.unknown_tags"
        known = "()"
        if layout.tagged:
            # The tagged fields are encoded first, each to bytes of its own. Values of the struct
            # that wait in the run come before the section: keep them out of the fields' bytes.
            waiting, self.run = self.run, Run()
            known = source.name("t")
            source.line(f"{known} = ()")
            for slot in layout.tagged:
                self.write_tag(slot, f"{value}.{slot.name}", known)
            self.run = waiting
            any_tag = f"{known} or {any_tag}"
        codes, values = self.run.take()
        with source.block(f"if {any_tag}:"):
            self.pack(codes, values)
            tags = source.constant("tagged_section", tagged_section)
            source.line(f"{self.append}({tags}({known}, {value}.unknown_tags))")
        with source.block("else:"):
            self.pack(codes + "x", values)

    def write_tag(self, slot: Slot, value: str, known: str) -> None:
        source = self.source
        with source.block(f"if {self.differs_from_default(slot.field, value)}:"):
            part = source.name("part")
            source.line(f"{part} = []")
            outer, self.append = self.append, f"{part}.append"
            self.write(slot, value)
            self.flush()
            self.append = outer
            source.line(f'{known} += (({slot.tag}, b"".join({part})),)')

    # -- fields ------------------------------------------------------------------------------

    def write(self, slot: Slot, value: str) -> None:
        if slot.kind in FORMATS:
            if slot.kind == "uuid":
                value = f"{self.source.constant('uuid', _checked_uuid)}({value})"
            self.run.add(FORMATS[slot.kind], value)
        elif slot.kind == "array":
            self.write_array(slot, value)
        elif slot.kind == "struct_":
            self.write_nested(slot, value)
        else:
            self.write_blob(slot, value)

    def write_blob(self, slot: Slot, value: str) -> None:
        """Write the code that encodes a string, bytes or records: a length, then the bytes."""
        source = self.source
        blob = source.name("b")
        convert = f"{value}.encode()" if slot.kind == "string" else value
        length = f"len({blob})"
        if slot.nullable:
            length = source.name("n")
            with source.block(f"if {value} is None:"):
                source.line(f'{blob} = b""')
                source.line(f"{length} = {0 if slot.compact else -1}")
            with source.block("else:"):
                source.line(f"{blob} = {convert}")
                self.count_bytes(slot, blob)
                source.line(f"{length} = len({blob}){' + 1' if slot.compact else ''}")
        else:
            source.line(f"{blob} = {convert}")
            self.count_bytes(slot, blob)
            if slot.compact:
                length = source.name("n")
                source.line(f"{length} = len({blob}) + 1")
        self.write_length(slot, length)
        self.flush()
        if slot.kind == "records_":
            spill_name = source.constant("spill", spill)
            with source.block(f"if buffers is None or len({blob}) < {BY_REFERENCE_SIZE_MIN}:"):
                source.line(f"{self.append}({blob})")
            with source.block("else:"):
                source.line(f"{spill_name}(buffers, out, {blob})")
        else:
            source.line(f"{self.append}({blob})")

    def count_bytes(self, slot: Slot, blob: str) -> None:
        """Write the code that turns a memoryview into one of bytes, whose `len` is the size."""
        if slot.kind == "string":
            return
        with self.source.block(f"if type({blob}) is not bytes:"):
            self.source.line(f"{blob} = {self.source.constant('byte_view', _byte_view)}({blob})")

    def write_length(self, slot: Slot, length: str) -> None:
        """Write the code that encodes a length or count, from a variable.

        For a compact length the variable holds the length plus 1.
        """
        if not slot.compact:
            self.run.add("h" if slot.kind == "string" else "i", length)
            return
        source = self.source
        codes, values = self.run.take()
        with source.block(f"if {length} < 128:"):
            if codes:
                self.pack(codes + "B", [*values, length])
            else:
                source.line(f"{self.append}({source.constant('ONE_BYTE', ONE_BYTE)}[{length}])")
        if slot.kind == "records_" and codes:
            # A length of two bytes is written in place, without a call: most batches have 127 to
            # 16382 bytes.
            with source.block(f"elif {length} < 16384:"):
                self.pack(codes + "BB", [*values, f"{length} & 127 | 128", f"{length} >> 7"])
        with source.block("else:"):
            self.pack(codes, values)
            if slot.kind == "string":
                long_form = source.constant("string_length", _string_length)
            else:
                long_form = source.constant("uvarint", uvarint)
            source.line(f"{self.append}({long_form}({length}))")

    def write_array(self, slot: Slot, value: str) -> None:
        source = self.source
        assert slot.element is not None, slot.path
        items, length = source.name("a"), source.name("n")
        source.line(f"{items} = {value}")
        count = f"len({items}){' + 1' if slot.compact else ''}"
        if slot.nullable:
            null = 0 if slot.compact else -1
            source.line(f"{length} = {null} if {items} is None else {count}")
        else:
            source.line(f"{length} = {count}")
        self.write_length(slot, length)
        self.flush()
        element = slot.element
        with source.block(f"if {items}:"):
            if element.kind in FORMATS and element.kind != "uuid":
                pack = source.constant("pack", struct.pack)
                code = FORMATS[element.kind]
                source.line(f'{self.append}({pack}(f">{{len({items})}}{code}", *{items}))')
                return
            item = source.name("e")
            with source.block(f"for {item} in {items}:"):
                self.write(element, item)
                self.flush()
                self.write_fold(element)

    def write_fold(self, element: Slot) -> None:
        """Write the code behind each element of an array: it joins the pieces if many wait.

        Write it only if the elements hold arrays: arrays of other elements have few pieces, which
        cost less than this code.
        """
        inner = element.layout
        if not self.folds or self.append != "append" or inner is None or not has_arrays(inner):
            return
        with self.source.block(f"if len(out) - folded > {PIECES_MAX}:"):
            self.source.line(f"folded = {self.source.constant('fold', fold)}(out, folded)")

    def write_nested(self, slot: Slot, value: str) -> None:
        assert slot.layout is not None, slot.path
        if not slot.nullable:
            nested = value
            if "." in value:
                nested = self.source.name("s")
                self.source.line(f"{nested} = {value}")
            self.write_struct(slot.layout, nested)
            return
        nested = self.source.name("s")
        self.source.line(f"{nested} = {value}")
        self.flush()
        # Kafka writes a null tagged struct as a varint 0, any other null struct as an int8 -1.
        null = "\\xff" if slot.tag is None else "\\0"
        with self.source.block(f"if {nested} is None:"):
            self.source.line(f'{self.append}(b"{null}")')
        with self.source.block("else:"):
            self.run.add("b", "1")
            self.write_struct(slot.layout, nested)
            self.flush()

    # -- runs --------------------------------------------------------------------------------

    def flush(self) -> None:
        self.pack(*self.run.take())

    def pack(self, codes: str, values: list[str]) -> None:
        if not codes:
            return
        if codes == "x":
            self.source.line(f'{self.append}(b"\\0")')
            return
        pack = self.source.struct_method("pack", codes)
        self.source.line(f"{self.append}({pack}({', '.join(values)}))")


# The generated functions call the functions below.


def spill(buffers: list[Payload], out: list[Payload], payload: Payload) -> None:
    """Move the joined pieces of `out`, then `payload` itself, to `buffers`."""
    if out:
        buffers.append(b"".join(out))
        out.clear()
    buffers.append(payload)


def fold(out: list[Payload], folded: int) -> int:
    """Join all pieces of `out` after the first `folded`; return the new number of pieces.

    The first `folded` pieces are joined already, so no byte is copied twice. Raises as
    `LimitedPieces.take` does.
    """
    joined = b"".join(out[folded:])
    out[folded:] = (joined,)
    if type(out) is LimitedPieces:
        out.take(len(joined))
    return folded + 1


def tagged_section(known: tuple[tuple[int, bytes], ...], unknown: dict[int, bytes]) -> bytes:
    """Return a struct's tagged section: count, then tag, size and data of each field, by tag."""
    tags = sorted({**unknown, **dict(known)}.items()) if unknown else known
    pieces = [uvarint(len(tags))]
    for tag, data in tags:
        pieces.append(uvarint(tag))
        pieces.append(uvarint(len(data)))
        pieces.append(data)
    return b"".join(pieces)


def _string_length(length: int) -> bytes:
    if length > STRING_SIZE_MAX + 1:
        raise struct.error(f"string of {length - 1} bytes; the most is {STRING_SIZE_MAX}")
    return uvarint(length)


def _byte_view(value: Payload) -> Payload:
    view = memoryview(value)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def _checked_uuid(value: bytes) -> bytes:
    # The struct format "16s" would silently cut or pad any other length.
    if len(value) != 16:
        raise struct.error(f"a uuid is 16 bytes, not {len(value)}: {value!r}")
    return value
