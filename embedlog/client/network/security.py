"""TLS and credentials for connections, made from the settings.

Keys are Kafka's: PEM in `ssl.truststore.*` and `ssl.keystore.*`, credentials in `sasl.jaas.config`.
`sasl.username` and `sasl.password` are librdkafka's, and win over the JAAS line. `ALIASES` maps the
names of librdkafka and kafka-python to these keys.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import ConfigError, KafkaError, error_for
from wire.error_codes import ErrorCode
from wire.sasl import PlainClient, SaslError, ScramClient
from wire.schemas.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from wire.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.settings import Settings
    from embedlog.runtime.randomness import Random
    from wire.sasl import SaslClient

ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.plain.password": "sasl.password",
    "sasl.plain.username": "sasl.username",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.cafile": "ssl.truststore.location",
    "ssl.certfile": "ssl.keystore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.keyfile": "ssl.key.location",
    "ssl.password": "ssl.key.password",
}
_LOGIN_MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
_TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
_NONCE_SIZE = 24
_REAUTHENTICATES_AFTER_PERCENT = 85
_REAUTHENTICATES_WITHIN_PERCENT = 10
_REAUTHENTICATES_AFTER_MIN_MS = 1_000
"""Brokers refuse a new authentication of a connection within this time after the last."""


class SslHandshakeFailed(KafkaError):
    """TLS with the peer failed: one side rejects the other's certificate or versions.

    Another attempt would fail as well, so requests fail at once. The error code does not
    come from a broker.
    """


def tls_arguments(settings: Settings) -> dict[str, Any]:
    """Return the arguments of `wire.net.tls.TlsOptions`.

    Raises:
        ConfigError: settings contradict each other.
    """
    _not_both(settings, "ssl.truststore.certificates", "ssl.truststore.location")
    _not_both(settings, "ssl.keystore.certificate.chain", "ssl.keystore.location")
    _not_both(settings, "ssl.keystore.key", "ssl.key.location")
    certificate, key = settings["ssl.keystore.certificate.chain"], settings["ssl.keystore.key"]
    if bool(certificate) != bool(key):
        raise ConfigError("ssl.keystore.certificate.chain and ssl.keystore.key: give both or none")
    for version in settings["ssl.enabled.protocols"]:
        if version not in _TLS_VERSIONS:
            allowed = " and ".join(_TLS_VERSIONS)
            raise ConfigError(f"ssl.enabled.protocols={version}: allowed are {allowed}")
    return {
        "trusted": settings["ssl.truststore.certificates"],
        "trusted_file": settings["ssl.truststore.location"],
        "certificate": certificate,
        "certificate_file": settings["ssl.keystore.location"],
        "key": key,
        "key_file": settings["ssl.key.location"],
        "key_password": settings["ssl.key.password"],
        "checks_host": settings["ssl.endpoint.identification.algorithm"] == "https",
        "checks_peer": settings["enable.ssl.certificate.verification"],
        "versions": settings["ssl.enabled.protocols"],
        "ciphers": settings["ssl.cipher.suites"],
    }


class Credentials:
    """The identity of this client, shared by its connections."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        random: Random,
        *,
        extensions: dict[str, str] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.username = username
        self._password = password
        self._random = random
        self._extensions = extensions

    def exchange(self) -> SaslExchange:
        return SaslExchange(self._client())

    def reauthenticate_after_ms(self, session_lifetime_ms: int) -> int:
        """Return the ms to the next authentication, at random near the session's end (KIP-368)."""
        percent = _REAUTHENTICATES_AFTER_PERCENT + self._random.below(
            _REAUTHENTICATES_WITHIN_PERCENT
        )
        return max(session_lifetime_ms * percent // 100, _REAUTHENTICATES_AFTER_MIN_MS)

    def _client(self) -> SaslClient:
        if self.mechanism == PlainClient.mechanism:
            return PlainClient(self.username, self._password)
        return ScramClient(
            self.mechanism,
            self.username,
            self._password,
            nonce=self._random.bytes(_NONCE_SIZE).hex(),
            extensions=self._extensions,
        )


def credentials(settings: Settings, random: Random) -> Credentials:
    """Return the credentials that the settings name.

    Raises:
        ConfigError: some are missing, or do not fit sasl.mechanism.
    """
    mechanism = settings["sasl.mechanism"]
    if mechanism is None:
        raise ConfigError("security.protocol with SASL needs sasl.mechanism")
    options: dict[str, str] = {}
    if settings["sasl.jaas.config"]:
        from embedlog.client.network.security_jaas import parse_jaas

        module, options = parse_jaas(settings["sasl.jaas.config"])
        if mechanism not in _LOGIN_MODULES.get(module, ()):
            raise ConfigError(f"sasl.jaas.config: {module} is not for sasl.mechanism={mechanism}")
    username = settings["sasl.username"] or options.get("username")
    password = settings["sasl.password"] or options.get("password")
    if not username or not password:
        raise ConfigError(
            "SASL needs a user and a password: sasl.username and sasl.password, "
            "or username and password in sasl.jaas.config"
        )
    is_token = options.get("tokenauth", "false").lower() == "true"
    extensions = {"tokenauth": "true"} if is_token else None
    return Credentials(mechanism, username, password, random, extensions=extensions)


class SaslExchange:
    """One authentication over a connection: SaslHandshake, then SaslAuthenticate step by step."""

    def __init__(self, client: SaslClient) -> None:
        self._client = client
        self.session_lifetime_ms = 0
        """How long the broker accepts this authentication; 0: for ever."""

    def begin(self) -> SaslHandshakeRequest:
        return SaslHandshakeRequest(mechanism=self._client.mechanism)

    def received(
        self, response: SaslHandshakeResponse | SaslAuthenticateResponse
    ) -> SaslAuthenticateRequest | None:
        """Take a response; return the next request, or None at the end.

        Raises:
            KafkaError: the broker refuses, or fails to prove its identity.
        """
        if isinstance(response, SaslHandshakeResponse):
            self._check_handshake(response)
            return SaslAuthenticateRequest(auth_bytes=self._client.begin())
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        try:
            answer = self._client.respond(bytes(response.auth_bytes))
        except SaslError as error:
            raise errors.SaslAuthenticationFailed(str(error)) from None
        if self._client.is_complete:
            self.session_lifetime_ms = response.session_lifetime_ms
            return None
        assert answer is not None, self._client
        return SaslAuthenticateRequest(auth_bytes=answer)

    def _check_handshake(self, response: SaslHandshakeResponse) -> None:
        code = response.error_code
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(response.mechanisms)
            raise error_for(code, f"the broker takes {offered}, not {self._client.mechanism}")
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            raise error_for(code, "this listener of the broker is without SASL")
        if code:
            raise error_for(code)


def _not_both(settings: Settings, one: str, other: str) -> None:
    if settings[one] and settings[other]:
        raise ConfigError(f"{one} and {other}: give one of both")
