"""`ConnectionSetup`: the exchange on a connection before it takes requests.

    ApiVersions                             asks for the versions that the node serves; repeated in
                                            an older version if the node does not know the newest.
                                            It names the node that the client expects; any other
                                            node refuses it (KIP-1242)
    SaslHandshake, SaslAuthenticate ...     with credentials; repeated before the session ends
                                            (KIP-368)

The setup writes nothing: each step is the next message and the version to write it in.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import error_for
from embedlog.transport import newest_common
from embedlog.version import __version__
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.network.security import Credentials, SaslExchange
    from wire.schema import Message
    from wire.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from wire.schemas.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
    from wire.schemas.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

    SaslRequest = SaslHandshakeRequest | SaslAuthenticateRequest
    Step = tuple[ApiVersionsRequest | SaslRequest, int]

_SOFTWARE_NAME = "embedlog"


class ConnectionSetup:
    """The setup of the successive connections to one node."""

    def __init__(self, address: str, credentials: Credentials | None) -> None:
        self._address = address
        self._credentials = credentials
        self._exchange: SaslExchange | None = None
        self._asked_again = False
        self._expected: tuple[str | None, int] = None, -1
        self._reauthenticates_at_ms = 0
        """When to authenticate again, before the session ends; 0 if the session has no end."""
        self.deadline_ms = 0
        """When the node must have answered all steps of the setup."""
        self.has_answered = False
        """True if the node has answered a request on this connection."""
        self.versions: dict[int, tuple[int, int]] | None = None
        """The versions that the node serves, by API key; kept while disconnected."""

    @property
    def has_credentials(self) -> bool:
        return self._credentials is not None

    def expect(self, cluster_id: str | None, node_id: int) -> None:
        """Let any other node refuse the next connections; with `cluster_id` None no node does."""
        self._expected = cluster_id, -1 if cluster_id is None else node_id

    # Versions

    def begin(self, deadline_ms: int) -> Step:
        self.deadline_ms = deadline_ms
        self._asked_again = self.has_answered = False
        return self._ask_versions(None)

    def take_versions(self, response: ApiVersionsResponse) -> Step | None:
        """Take the node's versions; return a step if it wants an older version of ApiVersions.

        A node that refuses version 0 as well is given up.

        Raises:
            KafkaError: the node refuses ApiVersions.
        """
        listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and not self._asked_again:
            self._asked_again = True
            return self._ask_versions(listed.get(ApiKey.API_VERSIONS, (0, 0))[1])
        if response.error_code:
            raise error_for(response.error_code, f"{self._address} refused ApiVersions")
        self.versions = listed
        return None

    def newest_version(self, kind: type[Message]) -> int:
        """Return the newest version of a request that both sides know. Requires: `versions` is set.

        Raises:
            UnsupportedVersion: there is none.
        """
        assert self.versions is not None, self._address
        known = kind.__declaration__
        assert known is not None, kind
        assert known.api is not None, kind
        return newest_common(kind, self.versions.get(known.api))

    def _ask_versions(self, version: int | None) -> Step:
        from wire.schemas.api_versions import ApiVersionsRequest

        request = ApiVersionsRequest(
            client_software_name=_SOFTWARE_NAME, client_software_version=__version__
        )
        request.cluster_id, request.node_id = self._expected
        chosen = declaration(ApiVersionsRequest).last_version if version is None else version
        return request, chosen

    # Authentication

    def authenticate(self) -> Step:
        """Return the first step of the authentication. Requires: credentials."""
        assert self._credentials is not None, self._address
        self._exchange = self._credentials.exchange()
        return self._sasl_step(self._exchange.begin())

    def take_authentication(
        self, response: SaslHandshakeResponse | SaslAuthenticateResponse, now_ms: int
    ) -> Step | None:
        """Return the next step; None once the node has accepted this client.

        Raises:
            KafkaError: the node refuses to authenticate this client.
        """
        assert self._credentials is not None, self._address
        assert self._exchange is not None, self._address
        request = self._exchange.received(response)
        if request is not None:
            return self._sasl_step(request)
        lifetime_ms, self._exchange = self._exchange.session_lifetime_ms, None
        pause_ms = self._credentials.reauthenticate_after_ms(lifetime_ms)
        self._reauthenticates_at_ms = now_ms + pause_ms if lifetime_ms else 0
        return None

    def is_session_over(self, now_ms: int) -> bool:
        return 0 < self._reauthenticates_at_ms <= now_ms

    def ended(self) -> None:
        self._reauthenticates_at_ms = 0

    def _sasl_step(self, request: SaslRequest) -> Step:
        """Return a SASL request as a step; refuse brokers before 1.0 (SASL without requests)."""
        version = self.newest_version(type(request))
        if declaration(type(request)).api == ApiKey.SASL_HANDSHAKE and not version:
            raise errors.UnsupportedVersion("SASL without requests, as before Kafka 1.0")
        return request, version
