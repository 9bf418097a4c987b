"""CRC-32C: all installed implementations agree."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.records.crc32c import IMPLEMENTATION, LOADERS, crc32c

IMPLEMENTATIONS = {name: load() for name, load in LOADERS.items()}


@pytest.mark.parametrize("name", LOADERS)
def test_check_vector(name: str) -> None:
    assert IMPLEMENTATIONS[name](b"123456789", 0) == 0xE3069283


@given(st.binary(max_size=300), st.integers(0, 300))
def test_implementations_agree_and_chain_over_all_buffers(data: bytes, cut: int) -> None:
    sums = set()
    for function in IMPLEMENTATIONS.values():
        sums.add(function(data, 0))
        sums.add(function(memoryview(data)[cut:], function(bytearray(data[:cut]), 0)))
    assert sums == {crc32c(data)}


def test_the_fastest_implementation_is_used_without_its_package_init() -> None:
    program = (
        "import sys\n"
        "from wire.records.crc32c import IMPLEMENTATION, crc32c\n"
        "assert crc32c(b'123456789') == 0xE3069283\n"
        "assert IMPLEMENTATION == 'crc32c', IMPLEMENTATION\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "import crc32c as package\n"
        "assert package.crc32c(b'123456789') == 0xE3069283\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert IMPLEMENTATION == "crc32c"


def test_records_load_neither_numpy_nor_codecs() -> None:
    program = (
        "import sys\n"
        "import wire.records\n"
        "wire.records.build_batch([b'v'] * 50, timestamps=1)\n"
        "list(wire.records.RecordBatch(wire.records.build_batch([b'v'], timestamps=1)).records())\n"
        "heavy = {'numpy', 'lz4', 'cramjam', 'zstandard', 'dataclasses', 'enum', 'typing', 're'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    isolated = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            "import sys; sys.path[:0] = PATHS\n".replace("PATHS", repr(sys.path)) + program,
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    assert isolated.stdout.strip() == "[]"
