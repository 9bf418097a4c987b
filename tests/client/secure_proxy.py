"""TLS, and SASL if wanted, in front of a listener without them; and the certificates."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

import embedlog
from tests.client.sasl_gate import SaslGate


class Authority:
    """An authority and the certificates that it has signed, as PEM texts."""

    def __init__(self) -> None:
        self.ca = trustme.CA()
        self.pem = self.ca.cert_pem.bytes().decode()

    def issue(self, *names: str, password: str | None = None) -> tuple[str, str]:
        """Return (certificate chain, key in PKCS#8, encrypted if there is a password)."""
        leaf = self.ca.issue_cert(*names)
        chain = "".join(each.bytes().decode() for each in leaf.cert_chain_pems)
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
        return chain, text

    def server_context(self, *names: str, wants_certificate: bool = False) -> ssl.SSLContext:
        """Return the TLS context of a server called `names`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names).configure_cert(context)
        if wants_certificate:
            self.ca.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class SecureProxy:
    """Passes connections on to `upstream`, after TLS and a gate for each connection."""

    def __init__(
        self, context: ssl.SSLContext | None, make_gate: Callable[[], SaslGate] | None
    ) -> None:
        self.upstream = ("127.0.0.1", 0)
        self._context = context
        self._make_gate = make_gate
        self.handshakes: list[Any] = []
        """(TLS version, client's certificate) of each handshake."""
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event = asyncio.Event()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))
        self._thread.start()
        assert self._listening.wait(10)

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def close(self) -> None:
        """Close; a second call does nothing."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        secured = writer.get_extra_info("ssl_object")
        if secured is not None:
            self.handshakes.append((secured.version(), secured.getpeercert()))
        back, there = await asyncio.open_connection(*self.upstream)
        try:
            if self._make_gate is not None:
                await self._guard(self._make_gate(), reader, writer, back, there)
            await asyncio.gather(self._pump(reader, there), self._pump(back, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for each in (writer, there):
                each.close()
                with contextlib.suppress(OSError, ssl.SSLError):
                    await each.wait_closed()

    async def _guard(
        self,
        gate: SaslGate,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamReader,
        there: asyncio.StreamWriter,
    ) -> None:
        """Pass frames through the gate until the client is in."""
        while not gate.is_open:
            frame = await self._frame(reader)
            told = b""
            if int.from_bytes(frame[:2], "big") == 18:
                there.write(len(frame).to_bytes(4, "big") + frame)
                answer = await self._frame(back)
                told = len(answer).to_bytes(4, "big") + answer
            buffers, hangs_up = gate.serve(frame, lambda _asked, told=told: [told])
            writer.write(b"".join(map(bytes, buffers or ())))
            await writer.drain()
            if hangs_up:
                raise ConnectionAbortedError

    async def _frame(self, reader: asyncio.StreamReader) -> bytes:
        size = int.from_bytes(await reader.readexactly(4), "big")
        return await reader.readexactly(size)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        raise ConnectionAbortedError


@contextlib.contextmanager
def secured_cluster(
    context: ssl.SSLContext | None = None, make_gate: Callable[[], SaslGate] | None = None
) -> Iterator[SecureProxy]:
    """A cluster in memory behind a proxy, whose address it advertises; its `address`."""
    proxy = SecureProxy(context, make_gate)
    try:
        advertised = {"advertised.listeners": f"PLAINTEXT://localhost:{proxy.port}"}
        with embedlog.open(config=advertised) as cluster:
            listener = cluster.listen("127.0.0.1", 0)
            proxy.upstream = (listener.host, listener.port)
            yield proxy
            proxy.close()
    finally:
        proxy.close()


@contextlib.contextmanager
def tls_port(context: ssl.SSLContext) -> Iterator[str]:
    """An address with nothing behind the handshake.

    It answers a refused client with the reason. (asyncio closes the connection instead, and keeps
    OpenSSL's alert.)
    """

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"localhost:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
