"""The bootstrap addresses of a cluster: refusals by constructors, and resolved names.

The Java client 4.4.0 gave the texts of the refusals.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog import Admin, ConfigError, Consumer, Producer
from embedlog.client.network.bootstrap import known_addresses

NOWHERE = "no.such.host.invalid:9092"
CANONICAL = "resolve_canonical_bootstrap_servers_only"

CLIENTS = pytest.mark.parametrize("client", [Producer, Consumer, Admin], ids=lambda c: c.__name__)


class Names:
    """A resolver for names of the test; the system resolves other names."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.canonical: dict[str, str] = {}
        self.asked: list[str] = []
        self._resolve: Callable[..., Any] = socket.getaddrinfo

    def getaddrinfo(self, name: bytes, port: int, **options: Any) -> list[Any]:
        self.asked.append(name.decode())
        known = self.addresses.get(name.decode())
        if known is None:
            return list(self._resolve(name, port, **options))
        if not known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in known]

    def getnameinfo(self, address: tuple[str, int], flags: int) -> tuple[str, str]:
        return self.canonical.get(address[0], address[0]), str(address[1])


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    names.addresses["nowhere"] = []
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    monkeypatch.setattr(socket, "getnameinfo", names.getnameinfo)
    return names


@pytest.fixture
def port() -> Iterator[int]:
    with embedlog.open() as cluster:
        yield int(cluster.listen("127.0.0.1", 0).address.rpartition(":")[2])


@CLIENTS
@pytest.mark.parametrize(
    "address",
    ["localhost", "localhost:", "localhost:-1", "localhost:0", "localhost:70000", "local host:1"]
    + ["localhost:99999999999", "localhost:9092/x", "localhost:9092,localhost", "", ","],
)
def test_an_address_that_is_none_is_refused_by_the_constructor(client: Any, address: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        client(address)
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        client(bootstrap_servers=address)


@CLIENTS
def test_a_name_that_nobody_knows_is_refused_by_the_constructor(client: Any, names: Names) -> None:
    with pytest.raises(ConfigError, match="No resolvable bootstrap urls given") as raised:
        client("nowhere:9092,nowhere:9093")
    assert "cannot resolve 'nowhere'" in str(raised.value)


def test_the_systems_resolver_is_asked() -> None:
    with pytest.raises(ConfigError, match="No resolvable bootstrap urls given"):
        Producer(NOWHERE)


@CLIENTS
def test_a_warning_tells_of_each_name_that_is_left_out(
    client: Any, names: Names, port: int
) -> None:
    with pytest.warns(UserWarning, match="cannot resolve 'nowhere'") as warned:
        client(f"nowhere:1,127.0.0.1:{port},nowhere:2").close()
    assert len(warned) == 2
    assert {each.filename for each in warned} == {__file__}


def test_left_out_names_are_not_connected_to(names: Names) -> None:
    names.addresses["somewhere"] = ["127.0.0.1"]
    with pytest.warns(UserWarning, match="nowhere"):
        found = known_addresses([("nowhere", 1), ("somewhere", 2)], "use_all_dns_ips")
    assert found == [("somewhere", 2)]


def test_canonical_names_take_the_place_of_the_name(names: Names) -> None:
    names.addresses |= {"all": ["127.0.0.1", "127.0.0.2"], "one": ["127.0.0.1"], "two": ["::1"]}
    names.canonical |= {"127.0.0.1": "one", "127.0.0.2": "two"}
    assert known_addresses([("all", 9)], CANONICAL) == [("one", 9), ("two", 9)]
    assert known_addresses([("all", 9)], "use_all_dns_ips") == [("all", 9)]


def test_a_canonical_name_without_address_is_warned_of(names: Names) -> None:
    names.addresses |= {"all": ["127.0.0.1", "127.0.0.2"], "one": ["127.0.0.1"]}
    names.canonical |= {"127.0.0.1": "one", "127.0.0.2": "nowhere"}
    with pytest.warns(UserWarning, match="cannot resolve 'nowhere'"):
        assert known_addresses([("all", 9)], CANONICAL) == [("one", 9)]


def test_looking_for_canonical_names_each_name_must_be_known(names: Names, port: int) -> None:
    with pytest.raises(ConfigError, match=r"Unknown host in bootstrap\.servers: 'nowhere'"):
        Consumer(f"127.0.0.1:{port},nowhere:1", client_dns_lookup=CANONICAL)


def test_a_client_reaches_the_cluster_by_canonical_names(names: Names, port: int) -> None:
    names.addresses |= {"all": ["127.0.0.1"], "one": ["127.0.0.1"]}
    names.canonical["127.0.0.1"] = "one"
    with Admin(f"all:{port}", client_dns_lookup=CANONICAL) as admin:
        assert admin.create_topics(["events"]).check()
    assert "one" in names.asked


def test_every_address_of_a_name_is_tried(names: Names, port: int) -> None:
    names.addresses["many"] = ["127.0.0.3", "127.0.0.2", "127.0.0.1"]
    with Producer(f"many:{port}") as producer:
        assert producer.send("events", b"value").result().offset == 0


def test_nothing_is_looked_up_for_a_cluster_of_this_process(names: Names) -> None:
    with embedlog.open() as cluster, Producer(cluster) as producer:
        producer.send("events", b"value").result()
    assert not names.asked


async def refused_by_aio() -> None:
    for client in (embedlog.aio.Producer, embedlog.aio.Consumer, embedlog.aio.Admin):
        with pytest.raises(ConfigError, match="No resolvable bootstrap urls given"):
            client("nowhere:9092")


def test_so_do_the_clients_for_asyncio(names: Names) -> None:
    import asyncio

    asyncio.run(refused_by_aio())
