"""CRC-32C (Castagnoli): the checksum of record batches of magic 2.

There are three implementations. The first that is installed is used, and `IMPLEMENTATION` names it:

    "crc32c"         24-31 GB/s, any buffer
    "google-crc32c"  23-31 GB/s, but takes `bytes` only: other buffers are copied
    "crcmod"         0.5 GB/s

Test vector: crc32c(b"123456789") == 0xE3069283.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec

    from wire.records.record import Buffer

    CrcFunction = Callable[[Buffer, int], int]


def load_crc32c() -> CrcFunction:
    """Return the function of the `crc32c` package's extension module.

    Only the extension's file is loaded, in less than 1 ms, unless the program has imported the
    package already. The package's own `__init__` imports importlib.metadata and argparse to find
    its version, which takes 35-50 ms.

    Raises:
        ImportError: the package or its extension is not installed.
    """
    loaded = sys.modules.get("crc32c._crc32c")
    if loaded is not None:
        return loaded.crc32c  # type: ignore[no-any-return]
    package = _find("crc32c", None)
    spec = _find("crc32c._crc32c", package.submodule_search_locations)
    if spec.loader is None:
        raise ImportError("crc32c has no extension module")
    module = spec.loader.create_module(spec)
    if module is None:
        raise ImportError(f"{spec.origin} is not an extension module")
    spec.loader.exec_module(module)
    return module.crc32c  # type: ignore[no-any-return]


def _find(name: str, path: Sequence[str] | None) -> ModuleSpec:
    # Search like importlib.util.find_spec, whose import takes longer than this whole file.
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path)
        if spec is not None:
            return spec
    raise ImportError(f"{name} is not installed")


def load_google_crc32c() -> CrcFunction:
    """Return a function over the `google-crc32c` package, whose C code accepts `bytes` only.

    Raises:
        ImportError: the package, or its C extension, is not installed.
    """
    from google_crc32c import extend, implementation

    if implementation != "c":
        raise ImportError("google-crc32c has only its pure Python form here")

    def google_crc32c(data: Buffer, value: int = 0) -> int:
        crc: int = extend(value, data if type(data) is bytes else bytes(data))
        return crc

    return google_crc32c


def load_crcmod() -> CrcFunction:
    """Return crcmod's function for the Castagnoli polynomial.

    Raises:
        ImportError: the package is not installed.
    """
    from crcmod import mkCrcFun

    # mkCrcFun takes the polynomial with its top bit, and chains on the un-complemented value.
    function = mkCrcFun(0x11EDC6F41, initCrc=0, rev=True, xorOut=0xFFFFFFFF)

    def crcmod_crc32c(data: Buffer, value: int = 0) -> int:
        return function(data, value)  # type: ignore[no-any-return]

    return crcmod_crc32c


LOADERS = {
    "crc32c": load_crc32c,
    "google-crc32c": load_google_crc32c,
    "crcmod": load_crcmod,
}


def _load_best() -> tuple[str, CrcFunction]:
    for name, load in LOADERS.items():
        try:
            return name, load()
        except ImportError:
            continue
    raise ImportError(f"no CRC-32C implementation: install one of {', '.join(LOADERS)}")


IMPLEMENTATION, _function = _load_best()


if TYPE_CHECKING:

    def crc32c(data: Buffer, value: int = 0) -> int:
        """Return the CRC-32C of `data`, continuing from the checksum `value` of earlier bytes."""
        ...

else:
    crc32c = _function
