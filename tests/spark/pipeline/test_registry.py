"""A schema registry over HTTP: its user, schemas that refer to others, and no secret in a text."""

from __future__ import annotations

import base64
import io
import json
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")
pytest.importorskip("grpc_tools")
pytest.importorskip("jsonschema")

from embedlog.spark.pipeline.decode.registry import Registry, RegistryUnavailable
from embedlog.spark.pipeline.decode.rows import Decoded, RowDecoder
from embedlog.spark.pipeline.errors import DecodeError, PipelineFailed, ProjectError
from embedlog.spark.pipeline.secrets import HIDDEN, redacted, split_url
from tests.spark.pipeline.support import Stream, project, record

USER, PASSWORD = "me", "p@ss: %?/word"
SECRET = "s3cret"


class FakeRegistry:
    """A server with `answers` by path. It notes each request."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.needs: str | None = None
        """The value of the header Authorization that it needs."""
        self.asked: list[tuple[str, str | None]] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                given = self.headers.get("Authorization")
                registry.asked.append((self.path, given))
                answer = registry.answers.get(self.path)
                if registry.needs is not None and given != registry.needs:
                    self.send_response(401)
                    self.end_headers()
                elif isinstance(answer, str) and answer.startswith("http"):
                    self.send_response(302)
                    self.send_header("Location", answer)
                    self.end_headers()
                else:
                    self.send_response(404 if answer is None else 200)
                    self.end_headers()
                    text = answer if isinstance(answer, str) else json.dumps(answer)
                    self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}"

    def add(self, path: str, schema: Any, kind: str | None = None, *references: Any) -> None:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        answer: dict[str, Any] = {"schema": text}
        if kind is not None:
            answer["schemaType"] = kind
        if references:
            answer["references"] = [
                {"name": name, "subject": subject, "version": version}
                for name, subject, version in references
            ]
        self.answers[path] = answer

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    made = FakeRegistry()
    yield made
    made.close()


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def decoder(directory: Path, format: str, schema: Any, **more: Any) -> RowDecoder:
    suffix = {"avro": "avsc", "protobuf": "proto", "json-schema": "json"}[format]
    text = schema if isinstance(schema, str) else json.dumps(schema)
    (directory / f"frozen.{suffix}").write_text(text)
    decode = {"format": format, "schema": f"frozen.{suffix}", **more}
    return RowDecoder(project(directory, decode=decode).decode, ())


def decoded(made: RowDecoder, number: int, value: bytes) -> Decoded:
    found = made.decode(None, b"\0" + number.to_bytes(4, "big") + value)
    assert found is not None
    return found


MONEY = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
NOTE = {"type": "record", "name": "shop.Note", "fields": [
    {"name": "text", "type": "string"}, {"name": "fee", "type": "shop.Money"}]}  # fmt: skip


def order(money: Any, note: Any) -> dict[str, Any]:
    fields = [{"name": "price", "type": money}, {"name": "note", "type": note}]
    return {"type": "record", "name": "shop.Order", "fields": fields}


WHOLE = order(MONEY, {**NOTE, "fields": [NOTE["fields"][0], {"name": "fee", "type": "Money"}]})


class TestUser:
    @pytest.mark.parametrize("how", ["url", "settings", "environment"])
    def test_a_registry_that_needs_a_user_gets_it(
        self, tmp_path: Path, registry: FakeRegistry, how: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from urllib.parse import quote

        registry.needs = basic(f"{USER}:{PASSWORD}")
        registry.add("/schemas/ids/1", WHOLE)
        monkeypatch.setenv("REGISTRY_PASSWORD", PASSWORD)
        given = {
            "url": {"url": f"http://{USER}:{quote(PASSWORD, safe='')}@{registry.host}/"},
            "settings": {"url": registry.url, "user_info": f"{USER}:{PASSWORD}"},
            "environment": {"url": registry.url, "user_info": "me:${REGISTRY_PASSWORD}"},
        }[how]
        made = decoder(tmp_path, "avro", WHOLE, registry=given)
        row = decoded(made, 1, b"\x0a\x02n\x04")
        assert row.columns["price"] == {"cents": 5}, row.error
        assert [path for path, _ in registry.asked] == ["/schemas/ids/1"]

    def test_a_wrong_user_fails_the_batch_and_is_not_shown(
        self, tmp_path: Path, registry: FakeRegistry
    ) -> None:
        registry.needs = basic("other:x")
        made = decoder(
            tmp_path, "avro", WHOLE, registry={"url": registry.url, "user_info": f"u:{SECRET}"}
        )
        with pytest.raises(RegistryUnavailable, match="status 401; see `user_info`") as caught:
            decoded(made, 1, b"")
        assert SECRET not in everything(caught.value)

    def test_the_user_does_not_go_along_a_redirect(
        self, tmp_path: Path, registry: FakeRegistry
    ) -> None:
        other = FakeRegistry()
        other.add("/here", WHOLE)
        registry.answers["/schemas/ids/1"] = f"{other.url}/here"
        made = decoder(
            tmp_path, "avro", WHOLE, registry={"url": registry.url, "user_info": f"u:{SECRET}"}
        )
        assert decoded(made, 1, b"\x0a\x02n\x04").error is None
        other.close()
        assert registry.asked == [("/schemas/ids/1", basic(f"u:{SECRET}"))]
        assert other.asked == [("/here", None)]


class TestReferences:
    def test_avro_that_refers_to_schemas_that_refer_to_others(
        self, tmp_path: Path, registry: FakeRegistry
    ) -> None:
        import fastavro

        note = ("shop.Note", "notes/shop", 3)
        money = ("shop.Money", "money", 1)
        registry.add("/schemas/ids/7", order("shop.Money", "shop.Note"), None, note, money)
        registry.add("/subjects/notes%2Fshop/versions/3", NOTE, None, money)
        registry.add("/subjects/money/versions/1", MONEY)
        made = decoder(tmp_path, "avro", WHOLE, registry={"url": registry.url})
        out = io.BytesIO()
        row = {"price": {"cents": 5}, "note": {"text": "n", "fee": {"cents": 2}}}
        fastavro.schemaless_writer(out, fastavro.parse_schema(WHOLE), row)
        for _ in range(2):
            found = decoded(made, 7, out.getvalue())
            assert (found.error, found.columns) == (None, row)
        assert len(registry.asked) == 3

    def test_protobuf_that_imports(self, tmp_path: Path, registry: FakeRegistry) -> None:
        frozen = """syntax = "proto3"; package shop;
            message Money { int64 cents = 1; } message Order { Money price = 1; }"""
        main = """syntax = "proto3"; package shop; import "shop/money.proto";
            message Order { Money price = 1; }"""
        registry.add("/schemas/ids/1", main, "PROTOBUF", ("shop/money.proto", "money", 1))
        part = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
        registry.add("/subjects/money/versions/1", part, "PROTOBUF")
        made = decoder(
            tmp_path, "protobuf", frozen, message="shop.Order", registry={"url": registry.url}
        )
        assert decoded(made, 1, b"\0\x0a\x02\x08\x05").columns == {"price": {"cents": 5}}
        registry.add("/schemas/ids/2", main, "PROTOBUF", ("../../money.proto", "money", 1))
        assert "not a path below" in str(decoded(made, 2, b"\0").error)

    @pytest.mark.parametrize("base", ["", "http://example.com/schemas/order.json"])
    def test_a_json_schema_that_refers_to_another(
        self, tmp_path: Path, registry: FakeRegistry, base: str
    ) -> None:
        address = {"type": "object", "properties": {"zip": {"type": "string", "maxLength": 4}}}
        main = {"type": "object", "properties": {"address": {"$ref": "address.json"}}}
        if base:
            main["$id"] = base
        registry.add("/schemas/ids/1", main, "JSON", ("address.json", "address", 2))
        registry.add("/subjects/address/versions/2", address, "JSON")
        frozen = {"type": "object", "properties": {"address": {**address, "maxLength": 9}}}
        made = decoder(tmp_path, "json-schema", frozen, registry={"url": registry.url})
        found = decoded(made, 1, b'{"address": {"zip": "8000"}}')
        assert (found.error, found.columns) == (None, {"address": {"zip": "8000"}})
        assert "too long (schema id 1)" in str(decoded(made, 1, b'{"address":{"zip":"80001"}}'))

    def test_a_reference_that_is_not_there_or_goes_round_is_the_records_error(
        self, tmp_path: Path, registry: FakeRegistry
    ) -> None:
        registry.add("/schemas/ids/1", WHOLE, None, ("shop.Gone", "gone", 1))
        registry.add("/schemas/ids/2", WHOLE, None, ("shop.A", "a", 1))
        registry.add("/subjects/a/versions/1", MONEY, None, ("shop.B", "b", 1))
        registry.add("/subjects/b/versions/1", MONEY, None, ("shop.A", "a", 1))
        made = decoder(tmp_path, "avro", WHOLE, registry={"url": registry.url})
        assert "'gone' version 1: not found" in str(decoded(made, 1, b"").error)
        assert "in a circle" in str(decoded(made, 2, b"").error)


@pytest.mark.parametrize(
    "answer",
    ["", "<html>", "[]", '{"schema": 5}', '{"schema": "\\ud83d"}', {"schema": "{}", "references":
     [{"name": "a"}]}, {"schema": "{}", "references": [5]}, '"x"'],
)  # fmt: skip
def test_an_answer_that_no_registry_gives_fails_the_batch_and_no_record(
    tmp_path: Path, registry: FakeRegistry, answer: Any
) -> None:
    registry.answers["/schemas/ids/1"] = answer
    made = decoder(tmp_path, "avro", WHOLE, registry={"url": registry.url})
    with pytest.raises(RegistryUnavailable, match="/schemas/ids/1"):
        decoded(made, 1, b"")


def everything(error: BaseException) -> str:
    """All that a log may show of an error."""
    return "".join(traceback.format_exception(error)) + repr(error)


JAAS = f'org.apache.kafka.PlainLoginModule required username="u" password="{SECRET}";'


def test_no_error_of_a_project_has_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", SECRET)
    avro = {"format": "avro", "schema": "s"}

    def decode(**registry: Any) -> dict[str, Any]:
        return {"decode": {**avro, "registry": registry}}

    def source(**options: Any) -> dict[str, Any]:
        return {"source": {"topics": ["a"], "path": "x", "options": options}}

    wrong: list[dict[str, Any]] = [
        decode(url=f"ftp://u:{SECRET}@host"), decode(url=f"http://u:{SECRET}@host:x1"),
        decode(url=f"http://u:{SECRET}@"), decode(url=f"http://[u:{SECRET}@host"),
        decode(url=f"//u:{SECRET}@host"), decode(url="http://h", user_info=SECRET),
        decode(url="http://h", user_info=[SECRET]), decode(user_info=f"u:{SECRET}"),
        decode(url=f"http://u:{SECRET}@h", user_info=f"u:{SECRET}"),
        decode(url=[f"http://u:{SECRET}@h"]), decode(url="ftp://u:${PASSWORD}@host"),
        decode(url="http://h", password=SECRET), decode(url="http://h", user_info="${PASSWORD}"),
        source(**{"kafka.sasl.password": [SECRET]}),
        source(**{"kafka.sasl.password": {"a": SECRET}}),
        source(**{"kafka.sasl.jaas.config": JAAS, "kafka.ssl.key.password": "${NOT_SET_HERE}"}),
        {"source": {"topics": ["a"], "path": "x", "options": [SECRET]}},
        {"decode": {**avro, "registry": [SECRET]}},
        {"source": {"password": SECRET, "topics": ["a"]}},
    ]  # fmt: skip
    for tables in wrong:
        with pytest.raises(ProjectError) as caught:
            project(tmp_path, **tables)
        assert SECRET not in everything(caught.value), tables
    options = {"kafka.sasl.jaas.config": JAAS, "kafka.ssl.key.password": "${PASSWORD}"}
    made = project(tmp_path, **source(**options))
    assert made.source.options["kafka.ssl.key.password"] == SECRET
    assert SECRET not in repr(made)
    whole = decode(url=f"http://u:{SECRET}@h")
    assert SECRET not in repr(project(tmp_path, **whole))
    assert {JAAS, SECRET} <= set(made.secrets)
    assert redacted(f"a {SECRET} b {JAAS}", made.secrets) == f"a {HIDDEN} b {HIDDEN}"


def test_a_registry_that_is_not_there_is_named_without_its_user(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        decode={"format": "avro", "schema": "s",
                "registry": {"url": f"http://u:{SECRET}@127.0.0.1:9/r"}},
    )  # fmt: skip
    for _ in range(2):
        with pytest.raises(RegistryUnavailable, match=r"http://127.0.0.1:9/r/schemas/ids/1") as one:
            Registry(made.decode).schema(1)
        assert SECRET not in everything(one.value)
    with pytest.raises(DecodeError) as caught:
        unknown = project(
            tmp_path, decode={"format": "avro", "schema": "s", "registry": {"directory": "ids"}}
        )
        Registry(unknown.decode).schema(1)
    assert SECRET not in everything(caught.value)
    assert split_url("https://[::1]:8081/x?y=1", "w") == ("https://[::1]:8081/x?y=1", None)


@pytest.mark.slow
def test_no_event_of_a_run_has_a_secret(spark: Any, tmp_path: Path) -> None:
    from embedlog.spark.pipeline.running.runner import Runner

    (tmp_path / "f.py").write_text(f"def fail(rows):\n    raise ValueError({JAAS!r})\n")
    made = project(
        tmp_path,
        source={"topics": ["orders"], "path": "log", "options": {"kafka.sasl.jaas.config": JAAS}},
        transform=[{"name": "t", "function": "f.py:fail"}],
    )
    stream = Stream(spark, tmp_path)
    stream.put(record(0, {"id": 1}))
    with pytest.raises(PipelineFailed) as caught:
        Runner(spark, made, read=stream.read).run()
    assert SECRET not in everything(caught.value)
    texts = [each.read_text() for each in (tmp_path / "state").glob("*.json*")]
    assert any(HIDDEN in text for text in texts)
    assert not any(SECRET in text for text in texts)
