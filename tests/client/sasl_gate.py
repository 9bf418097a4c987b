"""A broker's side of SASL in front of a broker without SASL: frames in, frames out.

The server's half of SCRAM is written from RFC 5802 and from stored keys, as a broker keeps them. It
shares nothing with the client under test.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any

from embedlog.testing.loopback_transport import LoopbackChannels
from wire import decode
from wire.connection import RequestFrame, ServerConnection
from wire.schemas.api_versions import ApiVersion, ApiVersionsResponse
from wire.schemas.sasl_authenticate import SaslAuthenticateResponse
from wire.schemas.sasl_handshake import SaslHandshakeResponse

API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
WRONG = "Authentication failed: Invalid username or password"
Forward = Callable[[Any], Sequence[Any] | None]


class Refused(Exception):
    """The client gets this message, and its connection is closed."""


class ScramServer:
    """A server's stored form of one password, and one conversation about it."""

    def __init__(self, name: str, password: str, *, iterations: int = 4096) -> None:
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[name]
        self.salt = os.urandom(16)
        self.iterations = iterations
        salted = hashlib.pbkdf2_hmac(self.hash, password.encode(), self.salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        self.stored_key = hashlib.new(self.hash, client_key).digest()
        self.server_key = hmac.digest(salted, b"Server Key", self.hash)
        self.said = ""

    @staticmethod
    def user_of(first: bytes) -> str:
        fields = dict(part.split("=", 1) for part in first.decode().split(",") if "=" in part)
        return fields["n"].replace("=2C", ",").replace("=3D", "=")

    def challenge(self, first: bytes) -> bytes:
        bare = first.decode().split(",", 2)[2]
        nonce = dict(part.split("=", 1) for part in bare.split(","))["r"]
        salt = b64encode(self.salt).decode()
        answer = f"r={nonce}{os.urandom(9).hex()},s={salt},i={self.iterations}"
        self.said = f"{bare},{answer}"
        return answer.encode()

    def verify(self, final: bytes) -> bytes:
        without_proof, _, proof = final.decode().rpartition(",p=")
        everything = f"{self.said},{without_proof}".encode()
        signature = hmac.digest(self.stored_key, everything, self.hash)
        client_key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
        if hashlib.new(self.hash, client_key).digest() != self.stored_key:
            raise Refused(WRONG)
        return b"v=" + b64encode(hmac.digest(self.server_key, everything, self.hash))


class SaslGate:
    """One connection of a listener that lets `users` (name: password) in by `mechanisms`."""

    def __init__(
        self,
        users: dict[str, str],
        mechanisms: Sequence[str],
        *,
        lifetime_ms: int = 0,
        clock: Callable[[], int] = lambda: 0,
    ) -> None:
        self.users = users
        self.mechanisms = list(mechanisms)
        self.lifetime_ms = lifetime_ms
        self.clock = clock
        self.mechanism = ""
        self.scram: ScramServer | None = None
        self.is_open = False
        self.expires_ms = 0
        self.authentications = 0

    def serve(self, frame: Any, forward: Forward) -> tuple[Sequence[Any] | None, bool]:
        """Return (answer, whether to hang up). `forward` asks the broker behind."""
        head = RequestFrame(frame)
        if head.api_key == API_VERSIONS:
            return [self._with_sasl(head, forward(frame))], False
        if head.api_key in {HANDSHAKE, AUTHENTICATE}:
            answer, hangs_up = self.step(head)
            framed = ServerConnection().respond(
                head.correlation_id, head.api_key, head.api_version, answer
            )
            return framed, hangs_up
        if not self.is_open or (self.lifetime_ms and self.clock() >= self.expires_ms):
            return None, True
        return forward(frame), False

    def _with_sasl(self, head: RequestFrame, answer: Sequence[Any] | None) -> bytes:
        """Return the broker's ApiVersions with the two APIs that the gate answers."""
        assert answer is not None
        body = b"".join(map(bytes, answer))[8:]
        listed = decode(ApiVersionsResponse, head.api_version, body)
        listed.api_keys = [key for key in listed.api_keys if key.api_key not in {17, 36}]
        listed.api_keys += [
            ApiVersion(api_key=HANDSHAKE, max_version=1),
            ApiVersion(api_key=AUTHENTICATE, max_version=2),
        ]
        framed = ServerConnection().respond(
            head.correlation_id, API_VERSIONS, head.api_version, listed
        )
        return b"".join(map(bytes, framed))

    def step(self, head: RequestFrame) -> tuple[Any, bool]:
        request = head.decode()
        if head.api_key == HANDSHAKE:
            if not self.mechanisms:
                return SaslHandshakeResponse(error_code=34), False
            known = request.mechanism in self.mechanisms
            self.mechanism, self.scram = request.mechanism, None
            code = 0 if known else 33
            return SaslHandshakeResponse(error_code=code, mechanisms=self.mechanisms), not known
        try:
            token, is_done = self._token(bytes(request.auth_bytes))
        except Refused as refusal:
            return SaslAuthenticateResponse(error_code=58, error_message=str(refusal)), True
        if is_done:
            self.is_open = True
            self.authentications += 1
            self.expires_ms = self.clock() + self.lifetime_ms
        lifetime = self.lifetime_ms if is_done else 0
        return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime), False

    def _token(self, token: bytes) -> tuple[bytes, bool]:
        if self.mechanism == "PLAIN":
            _, user, password = token.decode().split("\0")
            if self.users.get(user) != password:
                raise Refused(WRONG)
            return b"", True
        if self.scram is None:
            user = ScramServer.user_of(token)
            if user not in self.users:
                raise Refused(WRONG)
            self.scram = ScramServer(self.mechanism, self.users[user])
            return self.scram.challenge(token), False
        return self.scram.verify(token), True


class GatedChannels(LoopbackChannels):
    """A loopback to a cluster behind gates; `make_gate` makes one for each connection."""

    def __init__(self, cluster: Any, make_gate: Callable[[], SaslGate]) -> None:
        super().__init__(cluster)
        self.make_gate = make_gate
        self.gates: dict[Any, SaslGate] = {}

    def serve(self, end: Any, frame: memoryview) -> Sequence[Any] | None:
        gate = self.gates.setdefault(end, self.make_gate())
        behind = super().serve
        answer, hangs_up = gate.serve(frame, lambda asked: behind(end, asked))
        if not hangs_up:
            return answer
        if answer is not None:
            end.respond(answer)
        end.close()
        return None
