"""Generates the decoder of one message class at one version.

The function is flat, like the encoder. One `unpack_from` reads neighbouring fixed-size fields
straight into the slots of the message. Its last value is the first byte of the compact length or
tagged section that follows these fields. For two ints and a string:

    def decode(buf, pos, end):
        m = new(Example)
        m.id, m.kind, n1 = unpack_ihh(buf, pos)
        pos += 8
        stop = pos + n1
        if not pos <= stop <= end:
            raise bad_length("name", n1, pos, end)
        m.name = str(buf[pos:stop], "utf-8", "replace")
        pos = stop
        m.unknown_tags = NO_TAGS
        return m, pos

The decoder does not trust counts: before it makes a list, count times the minimum size of an
element must fit into the remaining bytes. All arrays of a request together may have `limit`
elements, `REQUEST_ELEMENTS_MAX` by default, because an element of one byte becomes an object of
hundreds of bytes. Reading past the end raises IndexError or struct.error; the caller turns them
into MalformedMessage.
Like Kafka, the decoder accepts bytes after the message, repeated or unordered tags, and strings
that are not UTF-8 (U+FFFD replaces bad bytes).
"""

from __future__ import annotations

import struct

from wire.errors import MalformedMessage
from wire.layout import FORMATS, Layout, Slot, has_records
from wire.primitives import STRING_SIZE_MAX, continue_uvarint, read_uvarint
from wire.schema import DEFAULT, NO_TAGS, Field
from wire.source import Run, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COPY_SIZE_MAX = 16 * 1024
"""A message without records, up to this size, is copied to `bytes`, which decode faster than a
memoryview."""

REQUEST_ELEMENTS_MAX = 50_000
"""Limit of the elements and unknown tagged fields of one request. A request at the limit takes
40 MB of memory, its answer included."""
TAGS_MAX = 100
"""Limit of the tagged fields in one tagged section."""


def generate_decoder(
    layout: Layout, name: str, version: int, *, is_request: bool = False
) -> Source:
    """Return the source of `decode(buf, pos, end) -> (message, position after it)`.

    The decoder of a request has a fourth parameter `limit`, the largest number of elements.
    """
    limit = f", limit={REQUEST_ELEMENTS_MAX}" if is_request else ""
    source = Source(f"def decode(buf, pos, end{limit}):", f"bytes -> {name} v{version}.")
    source.constant("new", object.__new__)
    # Records are slices of the buffer, so it must not be copied.
    if has_records(layout):
        source.line("view = memoryview(buf)")
    else:
        with source.block(f"if type(buf) is memoryview and end <= {COPY_SIZE_MAX}:"):
            source.line("buf = bytes(buf)")
    if is_request:
        source.line("left = limit")
    decoder = _Decoder(source, is_request=is_request)
    decoder.read_struct(layout, "m")
    source.line("return m, pos")
    return source


class _Decoder:
    def __init__(self, source: Source, *, is_request: bool) -> None:
        self.source = source
        self.is_request = is_request
        self.run = Run()

    # -- structs -----------------------------------------------------------------------------

    def read_struct(self, layout: Layout, target: str) -> None:
        """Write the code that reads a struct into the new variable `target`."""
        source = self.source
        cls = source.constant(layout.cls.__name__, layout.cls)
        source.line(f"{target} = new({cls})")
        for slot in layout.slots:
            self.read(slot, f"{target}.{slot.name}")
        for field in layout.absent:
            self.set_default(field, target)
        if layout.flexible:
            self.read_tags(layout, target)
        else:
            self.flush()
            source.line(f"{target}.unknown_tags = {source.constant('NO_TAGS', NO_TAGS)}")

    def set_default(self, field: Field, target: str) -> None:
        value = repr(field.default)
        if field.default is DEFAULT and field.struct is not None:
            value = self.source.constant(f"DEFAULT_{field.struct.__name__}", field.default_value())
        elif field.default is DEFAULT:
            value = "[]"
        elif field.kind == "uuid":
            value = self.source.constant("ZERO_UUID", _ZERO_UUID)
        self.source.line(f"{target}.{field.name} = {value}")

    def read_tags(self, layout: Layout, target: str) -> None:
        source = self.source
        count = source.name("n")
        self.run.add("B", count)
        self.flush()
        source.line(f"{target}.unknown_tags = {source.constant('NO_TAGS', NO_TAGS)}")
        for slot in layout.tagged:
            self.set_default(slot.field, target)
        with source.block(f"if {count}:"):
            self.count_elements(f"{layout.path} tags", count)
            if layout.tagged:
                self.read_known_tags(layout, target, count)
            else:
                skip = source.constant("read_unknown_tags", read_unknown_tags)
                source.line(f"{target}.unknown_tags, pos = {skip}(buf, pos, end, {count})")

    def read_known_tags(self, layout: Layout, target: str, count: str) -> None:
        source = self.source
        varint = source.constant("read_uvarint", read_uvarint)
        with source.block(f"if {count} > {TAGS_MAX}:"):
            too_many = source.constant("too_many", _too_many)
            source.line(f'raise {too_many}("{layout.path} tags", {TAGS_MAX})')
        unknown, tag, size, stop = (source.name(prefix) for prefix in ("u", "t", "n", "stop"))
        source.line(f"{unknown} = {{}}")
        with source.block(f"for _ in range({count}):"):
            source.line(f"{tag}, pos = {varint}(buf, pos)")
            source.line(f"{size}, pos = {varint}(buf, pos)")
            source.line(f"{stop} = pos + {size}")
            with source.block(f"if {stop} > end:"):
                self.raise_bad_length(f"{layout.path} tag", size)
            for slot in layout.tagged:
                with source.block(f"if {tag} == {slot.tag}:"):
                    self.read(slot, f"{target}.{slot.name}")
                    self.flush()
                    with source.block(f"if pos > {stop}:"):
                        self.raise_bad_length(slot.path, size)
                    source.line(f"pos = {stop}")
                    source.line("continue")
            source.line(f"{unknown}[{tag}] = bytes(buf[pos:{stop}])")
            source.line(f"pos = {stop}")
        with source.block(f"if {unknown}:"):
            source.line(f"{target}.unknown_tags = {unknown}")

    # -- fields ------------------------------------------------------------------------------

    def read(self, slot: Slot, target: str) -> None:
        if slot.kind in FORMATS:
            self.run.add(FORMATS[slot.kind], target)
        elif slot.kind == "array":
            self.read_array(slot, target)
        elif slot.kind == "struct_":
            self.read_nested(slot, target)
        else:
            self.read_blob(slot, target)

    def read_blob(self, slot: Slot, target: str) -> None:
        """Write the code that reads a string, bytes or records: a length, then the bytes."""
        source = self.source
        length = self.read_length(slot)
        content = {
            "string": 'str(buf[pos:stop], "utf-8", "replace")',
            "bytes_": "bytes(buf[pos:stop])",
            "records_": "view[pos:stop]",
        }[slot.kind]
        null = f"{length} == 0" if slot.compact else f"{length} < 0"
        if not slot.nullable:
            self.read_content(slot, target, length, content)
            return
        with source.block(f"if {null}:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            self.read_content(slot, target, length, content)

    def read_content(self, slot: Slot, target: str, length: str, content: str) -> None:
        source = self.source
        source.line(f"stop = pos + {length}{' - 1' if slot.compact else ''}")
        with source.block("if not pos <= stop <= end:"):
            self.raise_bad_length(slot.path, f"{length} - 1" if slot.compact else length)
        source.line(f"{target} = {content}")
        source.line("pos = stop")

    def read_length(self, slot: Slot) -> str:
        """Write the code that reads a length or count into a new variable; return its name.

        For a compact length the variable holds the length plus 1.
        """
        source = self.source
        length = source.name("n")
        self.run.add("B" if slot.compact else "h" if slot.kind == "string" else "i", length)
        self.flush()
        if not slot.compact:
            return length
        with source.block(f"if {length} > 127:"):
            if slot.kind == "records_":
                # A length of two bytes is read in place, without a call: most batches have 127 to
                # 16382 bytes.
                with source.block("if buf[pos] < 128:"):
                    source.line(f"{length} += (buf[pos] << 7) - 128")
                    source.line("pos += 1")
                with source.block("else:"):
                    self.finish_length(length)
            else:
                self.finish_length(length)
            if slot.kind == "string":
                with source.block(f"if {length} > {STRING_SIZE_MAX + 1}:"):
                    long_string = source.constant("long_string", _long_string)
                    source.line(f'raise {long_string}("{slot.path}", {length} - 1)')
        return length

    def finish_length(self, length: str) -> None:
        """Write the code that reads the rest of a varint, whose first byte is in `length`."""
        more = self.source.constant("continue_uvarint", continue_uvarint)
        self.source.line(f"{length}, pos = {more}(buf, pos, {length})")

    def read_array(self, slot: Slot, target: str) -> None:
        source = self.source
        count = self.read_length(slot)
        if not slot.nullable:
            self.read_elements(slot, target, count)
            return
        null = f"{count} == 0" if slot.compact else f"{count} < 0"
        with source.block(f"if {null}:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            self.read_elements(slot, target, count)

    def read_elements(self, slot: Slot, target: str, count: str) -> None:
        source = self.source
        element = slot.element
        assert element is not None, slot.path
        assert element.size_min > 0, slot.path
        if slot.compact:
            source.line(f"{count} -= 1")
        with source.block(f"if {count} and not 0 < {count} * {element.size_min} <= end - pos:"):
            bad_count = source.constant("bad_count", _bad_count)
            source.line(f'raise {bad_count}("{slot.path}", {count}, {element.size_min}, pos, end)')
        self.count_elements(slot.path, count)
        code = FORMATS.get(element.kind)
        if code is not None and element.kind != "uuid":
            unpack = source.constant("unpack_from", struct.unpack_from)
            source.line(f'{target} = list({unpack}(f">{{{count}}}{code}", buf, pos))')
            source.line(f"pos += {count} * {element.size_min}")
            return
        items = source.name("a")
        source.line(f"{items} = []")
        # A `while` loop, because most arrays have one element or none, and making a range costs as
        # much as ten iterations.
        with source.block(f"while {count}:"):
            source.line(f"{count} -= 1")
            item = source.name("e")
            self.read(element, item)
            self.flush()
            source.line(f"{items}.append({item})")
        source.line(f"{target} = {items}")

    def count_elements(self, path: str, count: str) -> None:
        """Write the code that subtracts `count` from the elements that the request may have."""
        if not self.is_request:
            return
        self.source.line(f"left -= {count}")
        with self.source.block("if left < 0:"):
            too_many = self.source.constant("too_many", _too_many)
            self.source.line(f'raise {too_many}("{path}", limit)')

    def read_nested(self, slot: Slot, target: str) -> None:
        source = self.source
        assert slot.layout is not None, slot.path
        nested = target if "." not in target else source.name("s")
        if not slot.nullable:
            self.read_struct(slot.layout, nested)
        else:
            present = source.name("n")
            # Kafka writes a null tagged struct as a varint 0, any other null struct as an int8 -1.
            self.run.add("b", present)
            self.flush()
            with source.block(f"if {present} {'< 0' if slot.tag is None else '== 0'}:"):
                source.line(f"{nested} = None")
            with source.block("else:"):
                self.read_struct(slot.layout, nested)
        if nested != target:
            source.line(f"{target} = {nested}")

    def raise_bad_length(self, path: str, length: str) -> None:
        bad_length = self.source.constant("bad_length", _bad_length)
        self.source.line(f'raise {bad_length}("{path}", {length}, pos, end)')

    # -- runs --------------------------------------------------------------------------------

    def flush(self) -> None:
        codes, targets = self.run.take()
        if not codes:
            return
        if codes == "B":
            self.source.line(f"{targets[0]} = buf[pos]")
            self.source.line("pos += 1")
            return
        unpack = self.source.struct_method("unpack_from", codes)
        comma = "," if len(targets) == 1 else ""
        self.source.line(f"{', '.join(targets)}{comma} = {unpack}(buf, pos)")
        self.source.line(f"pos += {struct.calcsize('>' + codes)}")


_ZERO_UUID = bytes(16)


# The generated functions call the functions below.


def read_unknown_tags(
    buffer: Any, position: int, end: int, count: int
) -> tuple[dict[int, bytes], int]:
    """Read `count` unknown tagged fields; return ({tag: data}, position after them)."""
    if count > TAGS_MAX:
        raise _too_many("tags", TAGS_MAX)
    tags = {}
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        if size > end - position:
            raise _bad_length("tag", size, position, end)
        tags[tag] = bytes(buffer[position : position + size])
        position += size
    return tags, position


def _bad_length(path: str, length: int, position: int, end: int) -> MalformedMessage:
    if length < 0:
        return MalformedMessage(f"{path} must not be null (length {length} before {position})")
    return MalformedMessage(f"{path} of {length} bytes at {position} passes the end at {end}")


def _too_many(path: str, limit: int) -> MalformedMessage:
    return MalformedMessage(f"{path}: more than the {limit} elements that are allowed")


def _long_string(path: str, length: int) -> MalformedMessage:
    return MalformedMessage(f"{path} of {length} bytes; the most is {STRING_SIZE_MAX}")


def _bad_count(path: str, count: int, size_min: int, position: int, end: int) -> MalformedMessage:
    if count < 0:
        return MalformedMessage(f"{path} must not be null (count {count} before {position})")
    return MalformedMessage(
        f"{path} of {count} elements, {size_min} bytes or more each, at {position}"
        f" passes the end at {end}"
    )
