"""The client's side of SASL, without I/O: it takes the server's messages and returns the answers.

    mechanism = ScramClient("SCRAM-SHA-256", "alice", "secret", nonce=24 random bytes as text)
    send(mechanism.begin())
    while not mechanism.is_complete:
        answer = mechanism.respond(receive())
        if answer is not None:
            send(answer)

PLAIN (RFC 4616) sends one message. SCRAM (RFC 5802, 7677) sends two, and proves to each side that
the other knows the password, without sending it:

    C: n,,n=user,r=<client nonce>              the part after "n,," is the first message, bare
    S: r=<client nonce + server nonce>,s=<salt>,i=<iterations>
    C: c=biws,r=<both nonces>,p=<proof>        "biws" is "n,,": no binding to a TLS channel
    S: v=<signature>   or   e=<error>
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class SaslClient(Protocol):
        """The client's side of one SASL exchange: a `PlainClient` or a `ScramClient`."""

        mechanism: str
        is_complete: bool
        """True once the exchange has succeeded."""

        def begin(self) -> bytes:
            """Return the first message."""

        def respond(self, challenge: bytes) -> bytes | None:
            """Take the server's message; return the answer, or None after the last message.

            Raises:
                SaslError: the server refuses, or its proof is wrong.
            """


ITERATIONS_MIN = 4_096
"""RFC 7677: with fewer iterations a stolen proof lets an attacker try passwords cheaply."""

ITERATIONS_MAX = 1_000_000
"""More iterations are refused, so that a server cannot keep its clients busy: this many take about
a second. Kafka stores at most 16,384."""

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_WITHOUT_CHANNEL_BINDING = "n,,"


class SaslError(Exception):
    """The exchange has failed: the server refuses, or does not prove that it knows the password."""


class PlainClient:
    """PLAIN: the user and the password in clear text. Use it only over encrypted connections."""

    mechanism = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()
        self.is_complete = False

    def begin(self) -> bytes:
        """Return `NUL user NUL password`; the authorization id, before the first NUL, is empty."""
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        """End the exchange; the server's answer must be empty."""
        if challenge:
            raise SaslError("PLAIN: the server answered with a challenge")
        self.is_complete = True
        return None


class ScramClient:
    """SCRAM-SHA-256 or SCRAM-SHA-512. `nonce` is an unpredictable text without commas.

    As in Kafka, names are not normalised with SASLprep. `extensions` are appended to the first
    message, such as Kafka's `tokenauth=true` for delegation tokens.
    """

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        nonce: str,
        extensions: dict[str, str] | None = None,
    ) -> None:
        import hashlib
        import hmac

        self.mechanism = mechanism
        self.is_complete = False
        self._hash = _HASHES[mechanism]
        self._hmac = hmac.digest
        self._is_equal = hmac.compare_digest
        self._digest = hashlib.new
        self._pbkdf2 = hashlib.pbkdf2_hmac
        self._password = password.encode()
        self._nonce = nonce
        escaped = username.replace("=", "=3D").replace(",", "=2C")
        extra = "".join(f",{name}={value}" for name, value in (extensions or {}).items())
        self._first_bare = f"n={escaped},r={nonce}{extra}"
        self._signature = b""
        """The expected signature of the server; empty before its first message."""

    def begin(self) -> bytes:
        """Return the first message, with the user's name and the client's nonce."""
        return (_WITHOUT_CHANNEL_BINDING + self._first_bare).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        """Answer the server's first message, the salt, with the proof of the password.

        For the server's second message, check the server's proof and return None.
        """
        if self.is_complete:
            raise SaslError(f"{self.mechanism}: the server goes on after the end")
        if self._signature:
            self._verify(_attributes(self.mechanism, challenge))
            return None
        return self._prove(challenge)

    def _prove(self, challenge: bytes) -> bytes:
        said = _attributes(self.mechanism, challenge)
        self._refuse_error(said)
        nonce, salt, iterations = self._parameters(said)
        salted = self._pbkdf2(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key", self._hash)
        stored_key = self._digest(self._hash, client_key).digest()
        channel = _to_base64(_WITHOUT_CHANNEL_BINDING.encode())
        final = f"c={channel},r={nonce}"
        proven = f"{self._first_bare},{challenge.decode()},{final}".encode()
        client_signature = self._hmac(stored_key, proven, self._hash)
        server_key = self._hmac(salted, b"Server Key", self._hash)
        self._signature = self._hmac(server_key, proven, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
        return f"{final},p={_to_base64(proof)}".encode()

    def _parameters(self, said: dict[str, str]) -> tuple[str, bytes, int]:
        """Return (both nonces, salt, iterations) of the server's first message.

        Raises:
            SaslError: the nonce does not begin with the client's, or the salt or the number of
                iterations is not allowed.
        """
        nonce = said.get("r", "")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise SaslError(f"{self.mechanism}: the server's nonce does not continue ours")
        salt = _from_base64(self.mechanism, "salt", said.get("s", ""))
        text = said.get("i", "")
        iterations = int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else -1
        if not salt or not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise SaslError(
                f"{self.mechanism}: the server asks for {text!r} iterations over {len(salt)} bytes "
                f"of salt; allowed are {ITERATIONS_MIN} to {ITERATIONS_MAX}, over some salt"
            )
        return nonce, salt, iterations

    def _verify(self, said: dict[str, str]) -> None:
        self._refuse_error(said)
        signature = _from_base64(self.mechanism, "signature", said.get("v", ""))
        if not self._is_equal(signature, self._signature):
            raise SaslError(f"{self.mechanism}: the server does not know the password either")
        self.is_complete = True

    def _refuse_error(self, said: dict[str, str]) -> None:
        if "e" in said:
            raise SaslError(f"{self.mechanism}: the server refuses: {said['e']}")


def _attributes(mechanism: str, message: bytes) -> dict[str, str]:
    """Return {letter: value} of a message of the form `a=value,b=value`."""
    try:
        parts = [part.partition("=") for part in message.decode().split(",")]
    except UnicodeDecodeError:
        parts = [("", "", "")]
    if any(len(name) != 1 or not equals for name, equals, _ in parts):
        raise SaslError(f"{mechanism}: the server's message is none: {message[:100]!r}")
    if parts[0][0] == "m":
        raise SaslError(f"{mechanism}: the server needs an extension that is not known")
    return {name: value for name, _, value in parts}


def _to_base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _from_base64(mechanism: str, what: str, text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except (Base64Error, ValueError):
        raise SaslError(f"{mechanism}: the server's {what} is not base64: {text[:100]!r}") from None
