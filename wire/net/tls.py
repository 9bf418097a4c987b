"""TLS for a client's connections, without sockets: it encrypts and decrypts bytes in memory.

    client = TlsClient(TlsOptions(trusted_file="ca.pem"))
    stream = client.stream("broker1")
    while not stream.handshake():          # False: it needs more bytes from the peer
        sock.send(stream.outgoing()); stream.feed(sock.recv(size))
    sock.send(b"".join(stream.encrypt(buffers)))
    frames = stream.decrypt(sock.recv(size), frame_reader)

OpenSSL works on two memory buffers, not on the socket. So `SocketChannels` does all reads and
writes itself, and OpenSSL never holds received bytes that a poll would not report. This costs a
copy in each direction, which is little compared with the encryption.
"""

from __future__ import annotations

import os
import ssl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from socket import socket

    from wire.framing import FrameReader

    Buffer = bytes | bytearray | memoryview

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_RECORD_SIZE_MAX = 16 * 1024


class TlsRefused(OSError):
    """The two sides cannot agree on TLS: a retry would fail too."""


class TlsOptions:
    """The settings of a TLS client.

    Certificates and keys are PEM, given as text or as the path of a file. By default the system's
    store has the trusted certificates. `certificate` is a chain that begins with the client's own;
    its key may be in the same file. With `checks_host` the peer's certificate must name the host
    that the client connects to. Without `checks_peer` the client accepts any certificate. `ciphers`
    are OpenSSL's or IANA's names; an empty list leaves the choice to OpenSSL.
    """

    def __init__(
        self,
        *,
        trusted: str | None = None,
        trusted_file: str | None = None,
        certificate: str | None = None,
        certificate_file: str | None = None,
        key: str | None = None,
        key_file: str | None = None,
        key_password: str | None = None,
        checks_host: bool = True,
        checks_peer: bool = True,
        versions: Iterable[str] = VERSIONS,
        ciphers: Sequence[str] = (),
    ) -> None:
        self.trusted = trusted
        self.trusted_file = trusted_file
        self.certificate = certificate
        self.certificate_file = certificate_file
        self.key = key
        self.key_file = key_file
        self.key_password = key_password
        self.checks_host = checks_host
        self.checks_peer = checks_peer
        self.versions = list(versions)
        self.ciphers = list(ciphers)


class TlsClient:
    """Makes the TLS streams of connections with the same options."""

    def __init__(self, options: TlsOptions) -> None:
        """Read certificates and keys.

        Raises:
            ValueError: a file or text has no usable content, or options contradict each other.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = options.checks_host and options.checks_peer
        if not options.checks_peer:
            context.verify_mode = ssl.CERT_NONE
        chosen = [VERSIONS[each] for each in options.versions]
        self._ciphers_of_1_3 = [each for each in options.ciphers if _is_of_tls_1_3(each)]
        if options.ciphers:
            chosen = _restrict_ciphers(context, options.ciphers, chosen)
        if not chosen:
            raise ValueError("no TLS version is left to speak")
        context.minimum_version, context.maximum_version = min(chosen), max(chosen)
        _load_trusted(context, options)
        if options.certificate or options.certificate_file:
            _load_own(context, options)
        self._context = context

    def stream(self, host: str) -> TlsStream:
        """Return the stream of a connection to `host`, the name for the `checks_host` check."""
        return TlsStream(self._context, host, self._ciphers_of_1_3)


class TlsStream:
    """TLS of one connection: plain bytes on the caller's side, TLS records on the peer's."""

    __slots__ = ("_allowed", "_host", "_incoming", "_object", "_outgoing", "has_heard", "is_open")

    def __init__(self, context: ssl.SSLContext, host: str, allowed: Sequence[str]) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._host = host
        self._allowed = allowed
        self.is_open = False
        """True once the handshake is complete."""
        self.has_heard = False
        """True once the peer has sent encrypted data."""

    @property
    def end_reason(self) -> str:
        """A likely reason why the peer has closed the connection."""
        if not self.is_open:
            return (
                "closed by the peer during the TLS handshake: "
                "does the port speak TLS, and a version of this client's?"
            )
        if not self.has_heard:
            return "closed by the peer after the TLS handshake: does it want another certificate?"
        return "closed by the peer"

    def feed(self, data: Buffer) -> None:
        """Take bytes that the peer sent, during the handshake."""
        self._incoming.write(data)

    def outgoing(self) -> bytes:
        """Return the bytes that must be sent to the peer now, and forget them."""
        return self._outgoing.read()

    def say_goodbye(self, sock: socket) -> None:
        """Try to send the last TLS alert to the peer. A broker logs the reason in it."""
        if last := self._outgoing.read():
            try:
                sock.send(last)
            except OSError:
                return  # the connection is broken already

    def handshake(self) -> bool:
        """Continue the handshake; return whether it is complete. Send `outgoing` afterwards.

        Raises:
            TlsRefused: one side does not accept the other; `outgoing` holds the alert for the peer.
        """
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise TlsRefused(_told(error)) from None
        cipher = self._object.cipher()
        # Python cannot restrict OpenSSL's choice of TLS 1.3 suites, so it is checked here.
        if self._allowed and cipher and cipher[1] == "TLSv1.3" and cipher[0] not in self._allowed:
            raise TlsRefused(f"the peer chose the cipher suite {cipher[0]}")
        self.is_open = True
        return True

    def encrypt(self, buffers: Iterable[Buffer]) -> list[bytes]:
        """Encrypt plain bytes; return the TLS records to send. Requires: `is_open`."""
        for buffer in buffers:
            view = memoryview(buffer)
            while view:
                view = view[self._object.write(view[:_RECORD_SIZE_MAX]) :]
        return [self._outgoing.read()]

    def decrypt(self, data: Buffer, reader: FrameReader) -> list[memoryview] | None:
        """Decrypt bytes from the peer; return the completed frames, or None if the peer ended TLS.

        Send `outgoing` afterwards. Requires: `is_open`.

        Raises:
            TlsRefused: the peer ended TLS before it sent any data.
            OSError: the TLS records are broken.
            InvalidFrameSize: the decrypted bytes hold a forbidden frame size.
        """
        self._incoming.write(data)
        frames: list[memoryview] = []
        while True:
            space = reader.free_space()
            try:
                count: int = self._object.read(len(space), space)  # type: ignore[assignment]
            except ssl.SSLWantReadError:
                return frames
            except ssl.SSLError as error:
                # With TLS 1.3 a server rejects the client's certificate only after the handshake.
                raise (
                    OSError(_told(error)) if self.has_heard else TlsRefused(_told(error))
                ) from None
            if not count:
                return frames or None
            self.has_heard = True
            frames += reader.received(count)


def _told(error: ssl.SSLError) -> str:
    """Return OpenSSL's message without the file names and line numbers in it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    reason = (error.reason or str(error)).lower().replace("_", " ")
    if reason in {"wrong version number", "unexpected message", "record layer failure"}:
        return f"{reason}: does the port speak TLS?"
    return reason


def _load_trusted(context: ssl.SSLContext, options: TlsOptions) -> None:
    if not options.trusted and not options.trusted_file:
        if options.checks_peer:
            context.load_default_certs()
        return
    try:
        if options.trusted:
            context.load_verify_locations(cadata=_pem(options.trusted))
        else:
            context.load_verify_locations(cafile=options.trusted_file)
    except (OSError, ValueError) as error:
        where = "" if options.trusted else f" in {options.trusted_file!r}"
        raise ValueError(f"no trusted PEM certificates{where}: {_plain(error)}") from None


def _load_own(context: ssl.SSLContext, options: TlsOptions) -> None:

    def no_password() -> str:
        raise ValueError("the private key is encrypted, and there is no password")

    password = options.key_password or no_password
    try:
        if options.certificate_file:
            context.load_cert_chain(options.certificate_file, options.key_file, password)
        else:
            chain = _pem(options.certificate or "") + "\n" + _pem(options.key or "")
            _load_text(context, chain, password)
    except (OSError, ValueError) as error:
        where = f" in {options.certificate_file!r}" if options.certificate_file else ""
        raise ValueError(f"no PEM certificate with its key{where}: {_plain(error)}") from None


def _load_text(context: ssl.SSLContext, chain: str, password: object) -> None:
    """Load a certificate from a text, through a file in memory: Python's ssl reads only files."""
    if not hasattr(os, "memfd_create"):
        _load_temporary(context, chain, password)
        return
    fd = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(fd, chain.encode())
        context.load_cert_chain(f"/proc/self/fd/{fd}", None, password)  # type: ignore[arg-type]
    finally:
        os.close(fd)


def _load_temporary(context: ssl.SSLContext, chain: str, password: object) -> None:
    """Load a certificate from a short-lived file that only this user can read."""
    from tempfile import mkstemp

    fd, path = mkstemp()
    try:
        os.write(fd, chain.encode())
        os.close(fd)
        context.load_cert_chain(path, None, password)  # type: ignore[arg-type]
    finally:
        os.unlink(path)


def _plain(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return getattr(error, "strerror", None) or str(error)


def _pem(text: str) -> str:
    """Restore PEM whose line breaks became spaces, as in a line of a properties file."""
    out = []
    for block in text.split("-----BEGIN ")[1:]:
        kind, _, rest = block.partition("-----")
        body = rest.partition("-----END ")[0]
        lines = body.strip().splitlines() if ":" in body else body.split()
        out += [f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"]
    return "\n".join(out)


# Cipher suites. A suite of TLS 1.3 has one name, an older suite has IANA's and OpenSSL's names.


def _is_of_tls_1_3(name: str) -> bool:
    return name.startswith("TLS_") and "_WITH_" not in name


def _restrict_ciphers(
    context: ssl.SSLContext, names: list[str], versions: list[ssl.TLSVersion]
) -> list[ssl.TLSVersion]:
    """Allow only these suites in the context; return the TLS versions that can use one of them."""
    older = [_openssl_name(name) for name in names if not _is_of_tls_1_3(name)]
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise ValueError(f"none of the cipher suites is known: {', '.join(names)}") from None
    has_newer = len(older) < len(names)
    return [
        version
        for version in versions
        if (has_newer if version == ssl.TLSVersion.TLSv1_3 else bool(older))
    ]


def _openssl_name(name: str) -> str:
    """Convert IANA's name of a suite to OpenSSL's.

    For example, `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256`.
    """
    exchange, found, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not found:
        return name
    exchange = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    cipher = cipher.replace("AES_", "AES").replace("_CBC", "").replace("_", "-")
    return exchange + cipher.replace("POLY1305-SHA256", "POLY1305")
