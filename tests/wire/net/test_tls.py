"""A TLS client over bytes: pieces of any size, broken records, peers that hang or lie."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.secure_proxy import Authority
from wire.framing import FrameReader, InvalidFrameSize
from wire.net.channel import EventKind
from wire.net.channels import SocketChannels
from wire.net.poller import EpollPoller, SelectorPoller
from wire.net.tls import TlsClient, TlsOptions, TlsRefused

AUTHORITY = Authority()
SERVER = AUTHORITY.server_context("broker", "127.0.0.1")
CLIENT = TlsClient(TlsOptions(trusted=AUTHORITY.pem))


class Server:
    """The server's end, by the standard library."""

    def __init__(self, context: ssl.SSLContext = SERVER) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def answer(self, data: bytes) -> bytes:
        """Take bytes of the client's handshake; return the server's answer."""
        self.incoming.write(data)
        with contextlib.suppress(ssl.SSLError):  # needs more bytes, or refuses in its answer
            self.tls.do_handshake()
        return self.outgoing.read()

    def read(self, data: bytes) -> bytes:
        self.incoming.write(data)
        found = b""
        while True:
            try:
                found += self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                return found

    def write(self, data: bytes) -> bytes:
        self.tls.write(data)
        return self.outgoing.read()


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def opened(client: TlsClient = CLIENT, server: Server | None = None, size: int = 1 << 16) -> Any:
    """Return (stream, server) after a handshake in pieces of `size` bytes."""
    server = server or Server()
    stream = client.stream("broker")
    is_open = stream.handshake()
    while not is_open:
        said = stream.outgoing()
        assert said, "both sides wait"
        for piece in cut(server.answer(said), size):
            stream.feed(piece)
            is_open = stream.handshake()
    # The client's last message, and with TLS 1.3 the server's tickets after it.
    tickets = server.answer(stream.outgoing())
    assert stream.decrypt(tickets, FrameReader()) == []
    assert not stream.has_heard
    return stream, server


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@given(
    payloads=st.lists(st.binary(max_size=40_000), max_size=6),
    size=st.sampled_from([1, 7, 1_000, 16_384, 1 << 20]),
)
def test_frames_come_through_however_the_stream_is_cut(payloads: list[bytes], size: int) -> None:
    stream, server = opened(size=max(size, 7))
    sent = b"".join(stream.encrypt([framed(each) for each in payloads]))
    assert server.read(sent) == b"".join(map(framed, payloads))

    reader, found = FrameReader(), []
    data = b"".join(server.write(framed(each)) for each in payloads)
    for piece in cut(data, size if len(data) < 20_000 else max(size, 1_000)):
        found += stream.decrypt(piece, reader) or []
    assert [bytes(each) for each in found] == payloads
    assert stream.has_heard == bool(payloads)


def test_questions_and_answers_take_turns() -> None:
    stream, server = opened()
    reader = FrameReader()
    for number in range(3):
        assert server.read(b"".join(stream.encrypt([framed(b"ask%d" % number)])))
        assert stream.decrypt(server.write(framed(b"answer%d" % number)), reader) == [
            b"answer%d" % number
        ]


def test_a_goodbye_is_the_end() -> None:
    stream, server = opened()
    with pytest.raises(ssl.SSLWantReadError):
        server.tls.unwrap()
    assert stream.decrypt(server.outgoing.read(), FrameReader()) is None


def test_a_broken_record_is_no_refusal_once_something_was_said() -> None:
    stream, server = opened()
    reader = FrameReader()
    assert stream.decrypt(server.write(framed(b"fine")), reader) == [b"fine"]
    broken = bytearray(server.write(framed(b"broken")))
    broken[-1] ^= 1
    with pytest.raises(OSError, match="bad record mac|decryption failed") as raised:
        stream.decrypt(bytes(broken), reader)
    assert not isinstance(raised.value, TlsRefused)


def test_a_frame_too_large_is_refused_inside_tls_too() -> None:
    stream, server = opened()
    with pytest.raises(InvalidFrameSize):
        stream.decrypt(server.write(framed(bytes(100))), FrameReader(size_max=99))


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 64, b"\xff" * 64])
def test_a_peer_that_does_not_speak_tls(answer: bytes) -> None:
    stream = CLIENT.stream("broker")
    assert not stream.handshake()
    stream.feed(b"\0" + answer)
    with pytest.raises(TlsRefused, match="does the port speak TLS"):
        stream.handshake()


def test_the_server_is_told_of_our_objection() -> None:
    stream = CLIENT.stream("somebody.else")
    server = Server()
    with pytest.raises(TlsRefused, match=r"the certificate is not accepted: .*somebody\.else"):
        while not stream.handshake():
            stream.feed(server.answer(stream.outgoing()))
    server.incoming.write(stream.outgoing())
    with pytest.raises(ssl.SSLError, match="(?i)alert"):
        server.tls.do_handshake()


def test_where_files_cannot_be_in_memory_a_key_is_on_disk_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chain, key = AUTHORITY.issue("alice.example", password="long word")
    wanting = AUTHORITY.server_context("broker", wants_certificate=True)
    client = TlsClient(
        TlsOptions(trusted=AUTHORITY.pem, certificate=chain, key=key, key_password="long word")
    )
    assert list(tmp_path.iterdir()) == []
    _, server = opened(client, Server(wanting))
    assert server.tls.getpeercert()["subjectAltName"] == (("DNS", "alice.example"),)
    with pytest.raises(ValueError, match="no PEM certificate"):
        TlsClient(TlsOptions(certificate=chain, key=key, key_password="wrong"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def channels(request: pytest.FixtureRequest) -> Any:
    made = SocketChannels(tls=CLIENT, poller=request.param(), send_buffer_size=4_096)
    yield made
    made.close_all()


def closed_event(channels: SocketChannels) -> Any:
    while True:
        for event in channels.poll(10_000):
            if event.kind == EventKind.CLOSED:
                return event


def test_a_peer_that_never_answers_the_handshake(channels: SocketChannels) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        channel = channels.connect("127.0.0.1", silent.getsockname()[1], timeout_ms=50)
        event = closed_event(channels)
    assert (event.channel, event.is_refused) == (channel, False)
    assert event.reason == "no answer to the TLS handshake in 0.05 s"
    assert channel.is_closed


def test_a_peer_that_hangs_up_during_the_handshake(channels: SocketChannels) -> None:
    with socket.create_server(("127.0.0.1", 0)) as rude:
        channels.connect("127.0.0.1", rude.getsockname()[1])
        connection, _ = rude.accept()
        connection.close()
        event = closed_event(channels)
    assert not event.is_refused
    assert "during the TLS handshake: does the port speak TLS" in event.reason


def test_what_was_given_before_the_handshake_is_sent_after_it(channels: SocketChannels) -> None:
    payload = os.urandom(300_000)
    server = Server()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        channel = channels.connect("127.0.0.1", listening.getsockname()[1])
        channels.send(channel, [framed(payload[:10]), framed(payload)])
        connection, _ = listening.accept()
        connection.setblocking(False)
        found = b""
        while len(found) < len(payload) + 18:
            assert not [each for each in channels.poll(5) if each.kind == EventKind.CLOSED]
            try:
                data = connection.recv(1 << 16)
            except BlockingIOError:
                continue
            if not channel.is_connected:
                connection.sendall(server.answer(data))
            else:
                found += server.read(data)
        connection.close()
    assert found == framed(payload[:10]) + framed(payload)


OLDER = ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256")
NEWER = "TLS_AES_128_GCM_SHA256"


def server_of(version: ssl.TLSVersion) -> Server:
    context = AUTHORITY.server_context("broker")
    context.maximum_version = version
    return Server(context)


def test_only_the_given_versions_are_spoken() -> None:
    client = TlsClient(TlsOptions(trusted=AUTHORITY.pem, versions=["TLSv1.2"]))
    assert opened(client)[1].tls.version() == "TLSv1.2"
    assert opened()[1].tls.version() == "TLSv1.3"


def test_only_the_given_suites_are_spoken() -> None:
    client = TlsClient(TlsOptions(trusted=AUTHORITY.pem, ciphers=[NEWER]))
    with pytest.raises(TlsRefused, match="the peer chose the cipher suite TLS_AES_256"):
        opened(client)
    client = TlsClient(TlsOptions(trusted=AUTHORITY.pem, ciphers=OLDER))
    assert opened(client)[1].tls.version() == "TLSv1.2", "no suite of TLS 1.3 is allowed"
    client = TlsClient(TlsOptions(trusted=AUTHORITY.pem, ciphers=[*OLDER, NEWER]))
    _, server = opened(client, server_of(ssl.TLSVersion.TLSv1_2))
    assert server.tls.cipher()[0] in OLDER


def test_without_a_check_of_the_peer_its_name_does_not_matter() -> None:
    client = TlsClient(TlsOptions(checks_peer=False))
    _, server = opened(client, Server(AUTHORITY.server_context("somebody.else")))
    assert server.tls.version()


def test_frames_before_a_goodbye_are_not_lost() -> None:
    stream, server = opened()
    data = server.write(framed(b"last"))
    with pytest.raises(ssl.SSLWantReadError):
        server.tls.unwrap()
    assert stream.decrypt(data + server.outgoing.read(), FrameReader()) == [b"last"]


def test_a_peer_that_is_not_trusted_is_refused_and_told() -> None:
    stranger = Server(Authority().server_context("127.0.0.1"))
    channels = SocketChannels(tls=CLIENT)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        channels.connect("127.0.0.1", listening.getsockname()[1])
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(10)
            channels.poll(10_000)
            connection.sendall(stranger.answer(connection.recv(1 << 16)))
            event = closed_event(channels)
            assert event.is_refused
            assert "the certificate is not accepted" in event.reason
            stranger.incoming.write(connection.recv(1 << 16))
            with pytest.raises(ssl.SSLError, match="(?i)alert"):
                stranger.tls.do_handshake()
    channels.close_all()
