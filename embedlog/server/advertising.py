"""The addresses in the settings `listeners` and `advertised.listeners`.

    PLAINTEXT://host:9092         of several brokers each next one has the next port: 9093, 9094
    PLAINTEXT://kafka-{id}:9092   `{id}` stands for the broker's number, and the port stays
    PLAINTEXT://:9092             no host: every address of the machine; in `advertised.listeners`
                                  the address that the client connected to
    PLAINTEXT://host:0            port 0: a free port; in `advertised.listeners` the broker's own

So no two brokers of a cluster get the same address.
"""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.config import BrokerConfig

LISTENER_NAME = "PLAINTEXT"
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = "0.0.0.0"
_NUMBER = "{id}"
_PORT_MAX = 65535


def address_of(config: BrokerConfig, setting: str, place: int = 0) -> tuple[str, int] | None:
    """Return the (host, port) of a broker in `setting`, or None if it is not set.

    `place` is the number of brokers before this one in the cluster.

    Raises:
        ConfigError: the setting does not name one plaintext address for the broker.
    """
    listeners = config.value(setting)
    if not listeners:
        return None
    assert isinstance(listeners, tuple), (setting, listeners)
    # Kafka's own `server.properties` also names the controller's listener. embedlog does not open
    # it.
    unserved = tuple(f"{name}://" for name in config.controller_listener_names)
    served = [each for each in listeners if not each.startswith(unserved)]
    name, _, address = served[0].partition("://") if served else ("", "", "")
    host, colon, digits = address.replace(_NUMBER, str(config.node_id)).rpartition(":")
    if len(served) != 1 or name != LISTENER_NAME or not colon or not digits.isdecimal():
        raise ConfigError(
            f"{setting}={','.join(listeners)}: expected {LISTENER_NAME}://host:port, in which "
            f"{_NUMBER} stands for the broker's number"
        )
    port = int(digits)
    if port and _NUMBER not in address:
        port += place
    if not 0 <= port <= _PORT_MAX:
        raise ConfigError(
            f"{setting}={','.join(listeners)}: broker {config.node_id} would have port {port}; "
            f"ports end at {_PORT_MAX}"
        )
    return host.removeprefix("[").removesuffix("]"), port


def advertised_address(config: BrokerConfig, listens_at: str) -> tuple[str, int]:
    """Return the (host, port) that clients get, for a listener that was opened at `listens_at`.

    Without `advertised.listeners` a name is advertised as it was written. A host of "" stands for
    the address that each client connected to, and port 0 for the port that it connected to.

    Raises:
        ConfigError: see `address_of`.
    """
    is_number = ":" in listens_at or not listens_at.strip("0123456789.")
    return address_of(config, "advertised.listeners") or ("" if is_number else listens_at, 0)
