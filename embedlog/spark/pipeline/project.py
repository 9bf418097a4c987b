"""The project file of a pipeline, checked as a whole before the pipeline runs.

TOML, or a Python file that assigns a dict of the same shape to `PROJECT`. TOML names functions as
`file.py:function` or `package.module:function`; a Python file may use the functions themselves.

    [pipeline]     name, state directory
    [source]       format ("embedlog" or "kafka"), topics, path, options
    [decode]       format, schema, envelope, header, registry (directory, url, user_info), key,
                   message, maps
    [[transform]]  sql, function or sessions; each gives a view of its name, the first reads `input`
    [[rule]]       name, expect, action (warn, drop, fail), on (input, output)
    [[sink]]       name, type, path or topic, from, mode, keys, partition_by
    [dead_letters] path, max_attempts, limit
    [watermark]    column, delay
    [trigger]      available_now, or every = "10s"
    [metrics]      prometheus_port, max_lag_records
"""

from __future__ import annotations

import runpy
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.places import (
    Place,
    check_apart,
    check_iceberg,
    check_name,
    check_topics,
    local_directory,
)
from embedlog.spark.pipeline.secrets import secrets_of, split_url
from embedlog.spark.pipeline.settings import Settings

DECODE_FORMATS = ("json", "avro", "protobuf", "json-schema", "none")
SINK_TYPES = ("parquet", "delta", "iceberg", "topic", "console")
TABLE_TYPES = ("parquet", "delta", "iceberg")
MODES = ("append", "scd1", "scd2")
ACTIONS = ("warn", "drop", "fail")
Reference: TypeAlias = str | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PipelineSource:
    """The topics to read. `path` is a data directory, for `embedlog` without a server."""

    format: str
    topics: tuple[str, ...]
    path: str | None
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Key:
    """How a record's key becomes columns: one value in `column`, or an object's members."""

    format: str
    column: str | None


@dataclass(frozen=True, slots=True)
class Decode:
    """How a record's value becomes columns. Paths are absolute."""

    format: str
    schema: str | None
    envelope: str
    header: str
    registry_directory: str | None
    registry_url: str | None
    message: str | None
    key: Key | None
    maps: tuple[Reference, ...]
    mapped_schema: str | None
    registry_user_info: str | None = field(default=None, repr=False)
    """`user:password` for the registry."""


@dataclass(frozen=True, slots=True)
class Transform:
    """One step over a frame: exactly one of `sql`, `function` and `sessions` is set."""

    name: str
    sql: str | None = None
    function: Reference | None = None
    sessions: SessionSettings | None = None


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Sessions by key: rows at most `gap_ms` apart belong to one session."""

    key: tuple[str, ...]
    gap_ms: int
    aggregates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A boolean SQL expression that must be true for a row; null counts as broken."""

    name: str
    expect: str
    action: str
    on: str


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go. `source` names a transform; the default is the last one."""

    name: str
    type: str
    path: str | None
    topic: str | None
    source: str | None
    mode: str
    keys: tuple[str, ...]
    sequence_by: str
    partition_by: tuple[str, ...]
    buckets: int
    tombstones: bool
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Where bad records go, and how often each may be tried. A negative `limit` means no limit."""

    path: str | None
    max_attempts: int
    limit: int


@dataclass(frozen=True, slots=True)
class Watermark:
    """Rows older than the greatest time of earlier batches minus `delay_ms` are late."""

    column: str
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Project:
    """A pipeline. `directory` holds the project file; relative paths start there."""

    name: str
    directory: str
    state: str
    source: PipelineSource
    decode: Decode
    transforms: tuple[Transform, ...]
    rules: tuple[Rule, ...]
    sinks: tuple[Sink, ...]
    dead_letters: DeadLetters
    watermark: Watermark | None
    every_ms: int | None
    """Time between batches; None to stop after the records that exist at the start."""
    prometheus_port: int | None
    max_lag_records: int | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the passwords and the like, which no error or event may contain."""
        options = [self.source.options, *(each.options for each in self.sinks)]
        return secrets_of(options, self.decode.registry_user_info)


def load(path: str | Path) -> Project:
    """Read a project file.

    Raises:
        ProjectError: the file cannot be read, or contains an error; says where and what.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "pipeline.toml"
    try:
        if file.suffix == ".py":
            table = _python_table(file)
        else:
            table = tomllib.loads(read_file(str(file)).decode())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProjectError(f"{file}: {error}") from None
    return parse(table, directory=file.parent, where=str(file))


def parse(table: object, *, directory: str | Path = ".", where: str = "project") -> Project:
    """Return the project that `table` describes; relative paths start at `directory`."""
    base = Path(directory).resolve()
    top = Settings(table, where)
    head = top.table("pipeline") or _missing(top, "pipeline")
    name = head.text("name")
    check_name(name, head.where)
    state = local_directory(base, head.text("state", f".pipeline/{name}"))
    head.finish()
    watermark = top.table("watermark")
    project = Project(
        name=name,
        directory=str(base),
        state=state,
        source=_source(top.table("source") or _missing(top, "source"), base),
        decode=_decode(top.table("decode") or _missing(top, "decode"), base),
        transforms=tuple(map(_transform, top.tables("transform"))),
        rules=tuple(map(_rule, top.tables("rule"))),
        sinks=tuple(_sink(each, base) for each in top.tables("sink")),
        dead_letters=_dead_letters(top.table("dead_letters"), base),
        watermark=_watermark(watermark) if watermark else None,
        every_ms=_trigger(top.table("trigger")),
        **_metrics(top.table("metrics")),
    )
    top.finish()
    _check(project, where)
    return project


def notes(project: Project) -> list[str]:
    """Return what a user should know about a project that is valid."""
    return [
        f"sink {each.name!r}, mode {each.mode}: without a `sequence_by` of yours, the times of "
        "records order the changes of a key in several partitions"
        for each in project.sinks
        if each.mode != "append" and each.sequence_by == "_offset"
    ]


def read_file(path: str) -> bytes:
    """Return the bytes of a project's file. Raises ProjectError if the file cannot be read."""
    try:
        return real_runtime().files.read(path)
    except OSError as error:
        raise ProjectError(f"{path}: {error.strerror or error}") from None


def resolve(reference: Reference, directory: str) -> Callable[..., Any]:
    """Return the function that a project names.

    Raises:
        ProjectError: there is no such file, module or function.
    """
    if not isinstance(reference, str):
        return reference
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise ProjectError(f"{reference!r}: `file.py:function` or `module:function` is needed")
    try:
        if place.endswith(".py"):
            found = _file_names(str(Path(directory, place))).get(name)
        else:
            found = getattr(import_module(place), name, None)
    except (OSError, ImportError, SyntaxError) as error:
        raise ProjectError(f"{reference!r}: {error}") from None
    if not callable(found):
        raise ProjectError(f"{reference!r}: {place} has no function `{name}`")
    return found  # type: ignore[no-any-return]


def _file_names(path: str) -> dict[str, Any]:
    """Run a user's file and return its names.

    The module cannot be imported by its name, so Spark sends its functions to the tasks by value.
    """
    return runpy.run_path(path, run_name="embedlog_project")


def _python_table(file: Path) -> object:
    names = _file_names(str(file))
    if "PROJECT" not in names:
        raise ProjectError(f"{file}: assigns no PROJECT")
    return names["PROJECT"]


def _missing(top: Settings, key: str) -> Settings:
    raise ProjectError(f"{top.where}: the table [{key}] is missing")


def _source(table: Settings, base: Path) -> PipelineSource:
    kind = table.choice("format", ("embedlog", "kafka"), "embedlog")
    path = _optional_path(table, "path", base)
    options = table.options("options")
    made = PipelineSource(kind, table.texts("topics"), path, options)
    table.finish()
    check_topics(made.topics, table.where)
    servers = "kafka.bootstrap.servers" in {key.lower() for key in options}
    if kind == "kafka" and not servers:
        raise ProjectError(f"{table.where}: format kafka needs options.'kafka.bootstrap.servers'")
    if kind == "embedlog" and not path and not servers:
        raise ProjectError(f"{table.where}: `path` or options.'kafka.bootstrap.servers' is needed")
    taken = {"subscribe", "subscribepattern", "assign", "includeheaders", "path"}
    for key in options:
        if key.lower() in taken:
            raise ProjectError(f"{table.where}: options.{key} is the pipeline's own to set")
    return made


def _decode(table: Settings, base: Path) -> Decode:
    kind = table.choice("format", DECODE_FORMATS)
    maps = table.any("maps") or ()
    registry = table.table("registry")
    url, user_info = _registry(registry) if registry else (None, None)
    made = Decode(
        format=kind,
        schema=_optional_path(table, "schema", base),
        envelope=table.choice("envelope", ("none", "debezium"), "none"),
        header=table.choice(
            "header", ("none", "confluent"), "none" if kind in ("json", "none") else "confluent"
        ),
        registry_directory=_optional_path(registry, "directory", base),
        registry_url=url,
        message=table.text("message", "") or None,
        key=_key(table.table("key")),
        maps=tuple([maps] if isinstance(maps, str) or callable(maps) else maps),
        mapped_schema=_optional_path(table, "mapped_schema", base),
        registry_user_info=user_info,
    )
    if registry:
        registry.finish()
    table.finish()
    if kind != "none" and made.schema is None:
        raise table.wrong("schema", None, "the file of the frozen schema")
    if bool(made.maps) != bool(made.mapped_schema):
        raise ProjectError(f"{table.where}: `maps` and `mapped_schema` go together")
    if made.header == "confluent" and not (made.registry_directory or made.registry_url):
        raise ProjectError(
            f"{table.where}: header confluent needs [decode.registry] with `directory` or `url`"
        )
    if kind == "protobuf" and not made.message:
        raise table.wrong("message", None, "the full name of the message")
    return made


def _registry(table: Settings) -> tuple[str | None, str | None]:
    """Return the registry's URL, and the user and password for it."""
    text, user_info = table.secret("url"), table.secret("user_info")
    if user_info is not None and ":" not in user_info:
        raise ProjectError(f"{table.where}: user_info: `user:password` is needed")
    if text is None:
        if user_info is not None:
            raise ProjectError(f"{table.where}: user_info without `url`")
        return None, None
    url, in_url = split_url(text, table.where)
    if in_url is not None and user_info is not None:
        raise ProjectError(f"{table.where}: the user is in `url` and in `user_info`")
    return url, user_info or in_url


def _optional_path(table: Settings | None, key: str, base: Path) -> str | None:
    text = table.text(key, "") if table else ""
    return local_directory(base, text) if text else None


def _key(table: Settings | None) -> Key | None:
    if table is None:
        return None
    kind = table.choice("format", ("string", "long", "json"))
    column = table.text("column", "") or None
    table.finish()
    if (kind == "json") == (column is not None):
        raise ProjectError(f"{table.where}: `column` names the column of a string or long key")
    return Key(kind, column)


def _transform(table: Settings) -> Transform:
    name = table.text("name")
    sql, function, sessions = table.text("sql", ""), table.any("function"), table.table("sessions")
    table.finish()
    if sum(map(bool, (sql, function, sessions))) != 1:
        raise ProjectError(f"{table.where}: one of `sql`, `function` and `sessions` is needed")
    if not name.isidentifier() or name == "input":
        raise table.wrong("name", name, "a name for SQL, not `input`,")
    if sessions is None:
        return Transform(name, sql or None, function)
    made = SessionSettings(
        sessions.texts("key"), sessions.duration_ms("gap"), sessions.options("aggregates")
    )
    sessions.finish()
    return Transform(name, sessions=made)


def _rule(table: Settings) -> Rule:
    made = Rule(
        table.text("name"),
        table.text("expect"),
        table.choice("action", ACTIONS),
        table.choice("on", ("input", "output"), "input"),
    )
    table.finish()
    return made


def _sink(table: Settings, base: Path) -> Sink:
    kind = table.choice("type", SINK_TYPES)
    mode = table.choice("mode", MODES, "append")
    made = Sink(
        name=table.text("name"),
        type=kind,
        path=_optional_path(table, "path", base),
        topic=table.text("topic", "") or None,
        source=table.text("from", "") or None,
        mode=mode,
        keys=table.texts("keys", ()),
        sequence_by=table.text("sequence_by", "_offset"),
        partition_by=table.texts("partition_by", ()),
        buckets=table.integer("buckets", 8, 1),
        tombstones=table.flag("tombstones", mode != "append" or kind == "topic"),
        options=table.options("options"),
    )
    table.finish()
    check_name(made.name, table.where)
    check_topics([t for t in (made.topic, made.options.get("dead_letter_topic")) if t], table.where)
    if kind in TABLE_TYPES and not made.path:
        raise table.wrong("path", None, "the directory of the table")
    if kind == "topic" and not made.topic:
        raise table.wrong("topic", None, "the topic to write to")
    if mode != "append" and (kind not in TABLE_TYPES or not made.keys or made.partition_by):
        raise ProjectError(
            f"{table.where}: mode {mode} needs a table, `keys`, and no `partition_by`"
        )
    return made


def _dead_letters(table: Settings | None, base: Path) -> DeadLetters:
    if table is None:
        return DeadLetters(None, 5, -1)
    made = DeadLetters(
        _optional_path(table, "path", base),
        table.integer("max_attempts", 5, 1),
        table.integer("limit", -1, -1),
    )
    table.finish()
    return made


def _watermark(table: Settings) -> Watermark:
    made = Watermark(table.text("column"), table.duration_ms("delay"))
    table.finish()
    return made


def _trigger(table: Settings | None) -> int | None:
    if table is None:
        return None
    now = table.flag("available_now", False)
    every = table.duration_ms("every", "0ms")
    table.finish()
    if now == table.has("every"):
        raise ProjectError(f"{table.where}: either available_now = true, or `every`, is needed")
    return None if now else every


def _metrics(table: Settings | None) -> dict[str, Any]:
    if table is None:
        return {"prometheus_port": None, "max_lag_records": None}
    made = {
        "prometheus_port": table.optional_integer("prometheus_port", 65_535),
        "max_lag_records": table.optional_integer("max_lag_records"),
    }
    table.finish()
    return made


def _check(project: Project, where: str) -> None:
    if not project.sinks:
        raise ProjectError(f"{where}: no [[sink]]: the pipeline would write nothing")
    for what, names in (
        ("transform", [each.name for each in project.transforms]),
        ("rule", [each.name for each in project.rules]),
        ("sink", [each.name for each in project.sinks]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise ProjectError(f"{where}: two [[{what}]] are named {name!r}")
    views = {"input", *(each.name for each in project.transforms)}
    for sink in project.sinks:
        if sink.source is not None and sink.source not in views:
            raise ProjectError(
                f"{where}: sink {sink.name!r}: from = {sink.source!r}, which no transform gives; "
                f"there are {', '.join(sorted(views))}"
            )
    sessions = [each for each in project.transforms if each.sessions]
    if sessions and project.watermark is None:
        raise ProjectError(f"{where}: transform {sessions[0].name!r} needs a [watermark]")
    check_apart(places(project), where)
    check_iceberg({s.name: s.options for s in project.sinks if s.type == "iceberg"}, where)
    for sink in project.sinks:
        _check_loop(project, sink, where)


def places(project: Project) -> list[Place]:
    """Return the directories that a project reads and writes."""
    found = [Place("the state directory", project.state)]
    if project.source.path is not None:
        found.append(Place("the source's path", project.source.path, is_log=True))
    for sink in project.sinks:
        if sink.path is not None:
            found.append(Place(f"the path of sink {sink.name!r}", sink.path, sink.type == "topic"))
    if project.dead_letters.path is not None:
        found.append(Place("the path of the dead letters", project.dead_letters.path))
    return found


def _check_loop(project: Project, sink: Sink, where: str) -> None:
    """Refuse a sink whose records the pipeline would read again."""
    if sink.type != "topic" or sink.path not in (None, project.source.path):
        return
    servers = "kafka.bootstrap.servers"
    given = {name.lower(): text for name, text in sink.options.items()}
    own = {name.lower(): text for name, text in project.source.options.items()}
    if given.get(servers, own.get(servers)) != own.get(servers):
        return
    for topic in (sink.topic, sink.options.get("dead_letter_topic")):
        if topic in project.source.topics:
            raise ProjectError(
                f"{where}: sink {sink.name!r} writes to the topic {topic!r}, which the pipeline "
                "reads: it would never end"
            )
