"""`Registry`: a schema registry in this process, with Confluent's HTTP API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.testing.faults.triggers import trigger_of
from embedlog.testing.http.server import HttpServer
from embedlog.testing.names import hint
from embedlog.testing.registry.catalog import Catalog
from embedlog.testing.registry.endpoint import Endpoint
from embedlog.testing.registry.faults import RegistryFault, RegistryRequest
from embedlog.testing.registry.store import Store
from embedlog.testing.registry.values import DEFAULT_CONTEXT, Reference, Schema, Subject, Version


class Registry:
    """A schema registry for tests. Every method may be called from any thread.

    It listens on loopback from the first use of `url` on, and needs the extra `registry`.

    >>> with Registry() as registry:
    ...     number = registry.register("orders-value", '{"type": "string"}')
    ...     registry.schema_by_id(number).text
    '"string"'
    """

    def __init__(self) -> None:
        self._lock = ranked_lock(Rank.REGISTRY)
        self._store = Store()
        self._catalog = Catalog(self._store)
        self._endpoint = Endpoint(self._catalog, self._lock)
        self._server: HttpServer | None = None
        self._is_closed = False

    # The server

    @property
    def url(self) -> str:
        """The address for clients, as `http://127.0.0.1:port`."""
        with self._lock:
            if self._is_closed:
                raise ClosedError("the schema registry is closed")
            if self._server is None:
                self._server = HttpServer(self._endpoint.answer, "embedlog-registry")
            return self._server.url

    def require_user(self, user: str, password: str) -> None:
        """From this call on, requests need these credentials (basic authentication)."""
        self._endpoint.user = (user, password)

    def client_config(self, client: str = "confluent") -> dict[str, Any]:
        """Return the settings for a client: "confluent", "java" or "kafkajs".

        >>> with Registry() as registry:
        ...     sorted(registry.client_config("confluent"))
        ['url']
        """
        made: dict[str, Any]
        user = self._endpoint.user
        if client == "confluent":
            made = {"url": self.url}
            if user is not None:
                made["basic.auth.user.info"] = ":".join(user)
        elif client == "java":
            made = {"schema.registry.url": self.url}
            if user is not None:
                made["basic.auth.credentials.source"] = "USER_INFO"
                made["basic.auth.user.info"] = ":".join(user)
        elif client == "kafkajs":
            made = {"host": self.url}
            if user is not None:
                made["auth"] = {
                    "username": user[0],
                    "password": user[1],
                }
        else:
            known = ("confluent", "java", "kafkajs")
            raise ConfigError(f"client_config({client!r}): {hint(client, known)}")
        return made

    # Schemas, without HTTP

    def register(
        self,
        subject: str,
        schema: str | Mapping[str, Any],
        type: str = "AVRO",
        references: Sequence[tuple[str, str, int]] = (),
    ) -> int:
        """Register a schema, as text or as decoded JSON, and return its id.

        `type` is "AVRO", "JSON" or "PROTOBUF". A reference is (name, subject, version).

        Raises:
            RegistryError: the schema or its compatibility forbids it; `code` says which.
        """
        import json

        text = schema if isinstance(schema, str) else json.dumps(schema)
        uses = [Reference(*each)._asdict() for each in references]
        body = {"schema": text, "schemaType": type, "references": uses}
        with self._lock:
            made = self._catalog.register(self._catalog.subject_of(subject), body, normalize=False)
            return made.id

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        with self._lock:
            return list(dict.fromkeys(str(each.subject) for each in self._store.all_versions()))

    def versions(self, subject: str) -> list[Version]:
        """Return the versions of a subject.

        Raises:
            RegistryError: there is no such subject.
        """
        with self._lock:
            return self._catalog.versions(Subject.of(subject))

    def schema_by_id(self, id: int, context: str = DEFAULT_CONTEXT) -> Schema:
        """Return the schema of an id: `text`, `kind`, `references`.

        Raises:
            RegistryError: there is none.
        """
        with self._lock:
            return self._catalog.by_id(context, str(id))

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility level of a subject, or of all subjects.

        Raises:
            RegistryError: there is no such level.
        """
        with self._lock:
            place = None if subject is None else Subject.of(subject)
            self._catalog.settings.set_config(place, {"compatibility": level})

    # Faults and requests

    def fault(
        self,
        what: str,
        *,
        status: int | None = None,
        code: int | None = None,
        message: str | None = None,
        once: bool | None = None,
        nth: int | None = None,
        times: int | None = None,
        always: bool | None = None,
        chance: float | None = None,
        seed: int | None = None,
        delay: float = 0.0,
        after: bool = False,
        may_miss: bool = False,
    ) -> RegistryFault:
        """Refuse or delay requests. The handle counts them, and `with` ends the fault.

        `what` is a verb ("register", "get_schema"), a method ("POST"), a path ("/subjects/*"), or a
        method and a path. `status` and `code` are the answer's, `delay` is in seconds. It acts
        once, unless `nth`, `times`, `always` or `chance` with `seed` say otherwise, as for
        `Kafka.fault`. With `after` the registry does its work before it fails. A fault that never
        acted raises UnfiredFault at its end, unless `may_miss` is true.

            with kafka.registry.fault("register", status=503, times=2) as fault:
                my_service()
            assert fault.hits == 2

        Raises:
            ConfigError: no request can match, or a value is wrong.
        """
        if self._is_closed:
            raise ClosedError(f"fault({what!r}): the schema registry is closed")
        trigger = trigger_of(
            once=once, nth=nth, times=times, always=always, chance=chance, seed=seed
        )
        made = RegistryFault(
            what,
            status=status,
            code=code,
            message=message,
            trigger=trigger,
            delay=delay,
            after=after,
            may_miss=may_miss,
            forget=self._forget,
        )
        self._endpoint.faults = [*self._endpoint.faults, made]
        return made

    def _forget(self, fault: RegistryFault) -> None:
        self._endpoint.faults = [each for each in self._endpoint.faults if each is not fault]

    @property
    def requests(self) -> list[RegistryRequest]:
        """The requests that were answered over HTTP, the last 10,000."""
        return list(self._endpoint.requests)

    # Saved states

    def snapshot(self) -> Store:
        """Return a copy of all subjects, schemas and settings, for `restore`."""
        with self._lock:
            return self._store.copy()

    def restore(self, saved: Store) -> None:
        """Return to a state that `snapshot` saved."""
        with self._lock:
            self._store.replace_by(saved)

    # Life

    def close(self) -> None:
        """End the server. Idempotent.

        Raises:
            UnfiredFault: a fault is still there that never acted.
        """
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
            server, self._server = self._server, None
        if was_closed:
            return
        faults = self._endpoint.faults
        for each in faults:
            each.remove()
        if server is not None:
            server.close()
        for each in faults:
            each.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for each in self._endpoint.faults:
                each.may_miss = True  # the test's own error is the one to show
        self.close()

    def __repr__(self) -> str:
        where = self._server.url if self._server is not None else "not listening"
        return f"<Registry, {where}>"
