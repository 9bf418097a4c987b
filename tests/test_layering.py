"""Which room may import which, read from the source: the architecture chapter as failing tests.

Imports for the type checker count, because a reader of the file has to know these names.

A *room* is a direct child of a package: a folder or a loose file. *Floors* are rows of rooms; a
room imports only rooms of lower floors. FLOORS are the floors of the house, INNER_FLOORS the floors
of its large packages.
"""

from __future__ import annotations

import ast
import functools
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OPERATING_SYSTEM = {
    *("os", "time", "mmap", "random", "secrets", "io", "fcntl", "resource"),
    *("tempfile", "urllib.request"),
}
AROUND_RUNTIME = {
    # `runtime` has no HTTP client, and a schema registry is the only server that needs one.
    ("embedlog/spark/pipeline/decode/registry.py", "urllib.request"),
    # protoc reads and writes real files, so it needs a directory of the operating system's.
    ("embedlog/spark/pipeline/decode/protobuf.py", "tempfile"),
    ("embedlog/testing/topics/formats/protobuf_messages.py", "tempfile"),
}
"""(file, module): imports that reach around `runtime`, each for the reason above it."""
SOCKETS = {"socket", "selectors", "select", "ssl", "asyncio", "threading", "time", "os"}

FLOORS = (
    "embedlog.__main__",
    "embedlog.cli",
    "embedlog.spark",
    "embedlog.testing",
    "embedlog",
    "embedlog.cluster",
    "embedlog.reader embedlog.server embedlog.aio embedlog.queue",
    "embedlog.broker embedlog.client",
    "embedlog.coordinator embedlog.sharing",
    "embedlog.controller embedlog.replication embedlog.transport",
    "embedlog.storage embedlog.purgatory",
    "embedlog.runtime embedlog.config",
    "embedlog.common embedlog.confluent_header embedlog.errors embedlog.logger embedlog.topic_names"
    " embedlog.user_warnings embedlog.version",
    "wire.net",
    "wire.connection",
    "wire.schemas",
    "wire",
    "wire.records",
)
"""The rooms of the house, the highest floor first. A module belongs to the room with the longest
matching name; `embedlog` is the front door alone. A room imports rooms of lower floors, and rooms
of its own floor if they form no circle.
"""

INNER_FLOORS = {
    "embedlog.testing.faults": (
        "faults",
        "presets stage",
        "options hold",
        "rule answers",
        "actions matching",
        "waiting refusals",
        "fired",
        "items mapping names",
        "messages paths triggers user_code",
    ),
    "embedlog.broker": (
        "apis",
        "share_requests share_state_requests",
        "commits end_offsets topics transaction_verification",
        "broker",
        "directory_keeper letter_routes marker_routes metadata_publisher share_state_routes",
        "dispatch peers",
        "on_demand",
        "automatic_settings automatic_topics context error_texts hosting loggers "
        "narrowed_versions parked_fetches "
        "listeners producer_ids replicas_to_host",
    ),
    "embedlog.cli": (
        "commands",
        "pipeline queue",
        "archiving backup ctl dump maintenance salvage serve tail verify",
        "controlled jobs queue_place",
        "directory exit_status internal_topics log_lines progress text",
    ),
    "embedlog.client": (
        "admin producer share",
        "consumer",
        "waiting",
        "connect lacks parse_settings",
        "metadata",
        "metadata_pauses network",
        "backoff serializers unknown_settings wanted_topics",
        "rare_warnings",
        "arguments assignors cluster_nodes drivers errors interceptors settings user_code",
    ),
    "embedlog.client.admin": (
        "admin",
        "share_groups share_state",
        "cluster configs group_offsets groups records replicas topics transactions",
        "part",
        "coordinators new_topics",
        "calls results",
    ),
    "embedlog.client.consumer": (
        "consumer",
        "closing iteration",
        "driver",
        "fetcher",
        "fetch_answers hand_out",
        "fetch_buffer positions",
        "completed_fetch epoch_lookup group",
        "fetch_session fetched_batches parts",
        "offset_lookup record subscription_state waking",
        "arrow guard leader_lookup rebalance_listener settings subscribed_topics",
    ),
    "embedlog.client.consumer.group": (
        "coordinator",
        "classic_membership",
        "classic_round consumer_membership",
        "classic_rebalance reconciliation",
        "auto_commit heartbeats",
        "classic_identity committed_offsets member offset_commits",
        "coordinator_lookup embedded_protocol group_offsets heartbeat_news listener_calls "
        "membership_duty",
    ),
    "embedlog.client.producer": (
        "producer",
        "transaction",
        "abandoned sends transactional",
        "parts",
        "passes",
        "in_process_sender request_sender",
        "outcomes",
        "transactions",
        "accumulator destinations",
        "futures metrics queues records",
        "batch",
        "columns",
        "partitioners settings sizes",
    ),
    "embedlog.client.share": (
        "held",
        "consumer",
        "closing",
        "driver",
        "coordinator hand_out",
        "leaders membership",
        "answers",
        "leader parts",
        "acknowledgements assignment fetched",
        "in_flight session",
        "acknowledge_type record settings wire_batches",
    ),
    "embedlog.cluster": (
        "processes",
        "cluster",
        "several single",
        "handles several_transport",
        "lone_link member",
        "lone_member neighbours",
        "shared",
        "presence",
        "listening lone_controller",
        "controller_host door running_broker",
        "controller_log directories ending faults interception layout metadata_feed",
    ),
    "embedlog.controller": (
        "controller",
        "brokers",
        "directories sessions",
        "partitions",
        "state",
        "metadata_log new_topics reassignments",
        "config_changes elections placement replay",
        "metadata",
        "features metadata_records topic_names",
    ),
    "embedlog.coordinator": (
        "group transaction",
        "share",
        "runtime",
        "answers delayed_commit loading",
        "records shard_context",
        "append_errors placement result",
    ),
    "embedlog.coordinator.group.classic": (
        "classic_groups",
        "join leave sync",
        "rebalances",
        "heartbeat parked_requests records",
        "classic_group",
        "members",
        "classic_member",
        "group_operation subscription",
    ),
    "embedlog.coordinator.group.consumer": (
        "consumer_groups",
        "classic_members consumer_heartbeats",
        "migration",
        "membership regex_matching update",
        "description member_timers replay target_assignment",
        "consumer_group",
        "holders member_records protocol_bytes reconciliation request_checks subscriptions",
        "member regexes",
    ),
    "embedlog.queue": (
        "queue",
        "working",
        "chores job",
        "peek settling",
        "puts stats taking",
        "dead delays",
        "put_options replies",
        "arguments backoff cron job_record reading setup",
        "names values",
    ),
    "embedlog.sharing": (
        "sharing",
        "dead_letters share_fetch",
        "share_partition",
        "interrupts key_order letter_records metrics settlement sharing_context",
        "acknowledgement log_read state_writer",
        "acquisition",
        "window",
        "in_flight settings",
        "share_sessions",
        "delivery start_offset state_errors",
    ),
    "embedlog.coordinator.group": (
        "group_coordinator",
        "group_shard",
        "administration consumer streams",
        "classic share",
        "assignment_interval offsets target",
        "member_replay member_timers static_members",
        "modern_group",
        "group",
        "assignors metadata_hash protocols",
    ),
    "embedlog.coordinator.group.share": (
        "share_groups",
        "offsets share_heartbeats",
        "deletion update",
        "initialization",
        "description membership replay target_assignment",
        "described_offsets share_group",
        "member_records",
        "request_checks",
        "member state_topics",
    ),
    "embedlog.coordinator.group.streams": (
        "streams_groups",
        "streams_heartbeats",
        "stored_descriptions update",
        "membership",
        "initial_delay member_timers",
        "description replay target_assignment",
        "streams_group",
        "commit_check endpoints member_records reconciliation request_checks sticky_assignor",
        "configured_topology task_holders topology_records",
        "member partition_counts processes",
        "creation_errors descriptions facts status tasks topology",
    ),
    "embedlog.replication": (
        "delayed_fetch",
        "replica_manager",
        "cluster_replication fetch_sessions",
        "fetch_context",
        "fetch_reader",
        "delayed_delete_records delayed_produce fetch_params fetch_session fetcher in_sync "
        "partition_duty",
        "partition",
        "remote_replicas",
        "membership",
        "leader_and_isr throttles",
    ),
    "embedlog.runtime": (
        "os_files",
        "copied_file scheduler",
        "ahead background duty_thread os_file wrapped_files",
        "descriptors pending threads",
        "clock_guard lock_owner locks memory_files",
        "at_exit clock environment files forks lock_order outer_call randomness running_calls",
    ),
    "embedlog.spark.jobs": (
        "compact",
        "compact_iceberg diff restore",
        "archive packing profile repartition rewrite scrub",
        "report targets tasks topics",
    ),
    "embedlog.spark.pipeline": (
        "kit",
        "commands declarative",
        "running",
        "batch",
        "decode sinks",
        "columns project",
        "places schema settings tables",
        "secrets",
        "errors",
    ),
    "embedlog.storage": (
        "data_directories",
        "relocation verification",
        "directory staging",
        "cleaner foreign recovery replica",
        "log",
        "producers",
        "segments watched_files",
        "log_health state_files validation",
        "batch_walk degradation events log_config log_values open_files paths",
    ),
    "embedlog.storage.directory": (
        "clean_copy",
        "log_manager",
        "health",
        "log_opener tasks",
        "data_path leftovers log_checkpoints pins",
        "owned_directory preparation",
        "checkpoints meta_properties partition_directories",
    ),
    "embedlog.storage.state_files": (
        "archived_offsets retention_pins",
        "checkpoint_files commit_file foreign_document leader_epochs",
        "clean_shutdown log_dirs partition_metadata published_offset sealed_file staged_layout",
    ),
    "embedlog.testing.time": (
        "kafka_clock",
        "heartbeats leaps",
        "mover runtimes traffic",
        "moved_scheduler",
        "moved_clock",
        "real_waits steady_clock timers waits",
    ),
    "embedlog.storage.log": (
        "shutdown",
        "checked_read opening periodic_sync retention",
        "log",
        "reader",
        "offsets writer",
        "durability epochs gaps transactions",
    ),
    "embedlog.testing.topics": (
        "diff produced topic",
        "comparing filling gathering json_lines offsets seeding",
        "look reading transactions",
        "logs seeds",
        "matching",
        "record times",
        "formats",
    ),
    "embedlog.testing.registry": (
        "registry",
        "endpoint",
        "faults",
        "api",
        "catalog",
        "compatibility reader settings",
        "store",
        "values",
        "errors schemas",
    ),
    "wire": (
        "connection",
        "compiler headers",
        "decoder diagnosis encoder interpreter net",
        "framing layout primitives registry schemas",
        "api_keys error_codes errors logger records sasl schema source",
    ),
    "embedlog.testing": (
        "pytest_plugin remote",
        "simulation unittest_case",
        "container forms plugin",
        "kafka proxy",
        "control",
        "snapshots",
        "on_demand opening waits",
        "clients inspection leaks registry time timeline topics toxics",
        "cluster_owner signals stage_list",
        "shape",
        "faults personas",
        "http interception loopback_transport names simulated_runtime timed_out",
        "seen_request sim_files sim_scheduler unfired",
        "sim_clock",
    ),
    "wire.net": (
        "listener",
        "channels connection",
        "acceptor connecting relay",
        "channel loop receive_memory",
        "clock limits poller reports resolver send_queue tls unread_answers",
    ),
    "wire.records": (
        "control legacy_conversion retain",
        "batch",
        "decode",
        "encode legacy",
        "compression",
        "crc32c format",
        "errors known record varint",
    ),
}
"""The floors inside each package of at least LARGE rooms, the highest first."""

LARGE = 12
ARROWS_MAX = {"": 174, "embedlog.storage": 100}
"""Most arrows, pairs of rooms where one imports the other, in a package. "" stands for the whole
house, with `wire` as one room. The test kit looks into most rooms."""

THREAD_MAKERS = ("Thread", "start_new_thread")


@pytest.fixture(scope="module", autouse=True)
def _no_garbage_is_looked_for() -> Iterator[None]:
    """Turn the garbage collector off: it finds nothing in syntax trees and took half of
    the time.
    """
    gc.disable()
    yield
    gc.enable()


class Import:
    """One import statement, which runs with its module, in a function, or only for the type
    checker.
    """

    def __init__(
        self, file: str, line: int, module: str, names: tuple[str, ...], *, runs: bool
    ) -> None:
        self.file = file
        self.line = line
        self.module = module
        self.names = names
        self.runs = runs

    def reaches(self, *prefixes: str) -> bool:
        """Return whether it loads `prefix`, a module below it, or a name that is such a module."""
        targets = [self.module, *(f"{self.module}.{name}" for name in self.names)]
        return any(t == p or t.startswith(p + ".") for t in targets for p in prefixes)

    def __repr__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module} ({', '.join(self.names)})"


def _is_type_checking(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@functools.cache
def _imports(path: Path) -> list[Import]:
    relative = str(path.relative_to(ROOT))
    package = relative.removesuffix("/__init__.py").removesuffix(".py").split("/")
    if path.name != "__init__.py":
        package = package[:-1]
    found: list[Import] = []

    def note(line: int, module: str, names: tuple[str, ...], runs: bool) -> None:
        found.append(Import(relative, line, module, names, runs=runs))

    def visit(node: ast.AST, runs: bool) -> None:
        if isinstance(node, ast.If) and _is_type_checking(node):
            for child in node.body:
                visit(child, False)
            for child in node.orelse:
                visit(child, runs)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                note(node.lineno, alias.name, (), runs)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            note(node.lineno, module, tuple(alias.name for alias in node.names), runs)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # most nodes of a tree, which contain no import
                visit(child, runs)

    visit(ast.parse(path.read_text(), str(path)), True)
    return found


class House:
    """The imports of every module, and the room of each."""

    def __init__(self, files: dict[str, Path]) -> None:
        self.imports: dict[str, set[str]] = {}
        for module, path in files.items():
            found = self.imports[module] = set()
            for each in _imports(path):
                below = [f"{each.module}.{name}" for name in each.names]
                targets = {t for t in below if t in files} or {each.module} & files.keys()
                found |= targets - {module}

    def circles(self) -> list[list[str]]:
        """Return the groups of modules that reach each other: strongly connected components
        (Tarjan).
        """
        order: dict[str, int] = {}
        lowest: dict[str, int] = {}
        waiting: list[str] = []
        found: list[list[str]] = []

        def visit(module: str) -> None:
            order[module] = lowest[module] = len(order)
            waiting.append(module)
            for target in sorted(self.imports[module]):
                if target not in order:
                    visit(target)
                    lowest[module] = min(lowest[module], lowest[target])
                elif target in waiting:
                    lowest[module] = min(lowest[module], order[target])
            if lowest[module] == order[module]:
                start = waiting.index(module)
                if len(waiting) - start > 1:
                    found.append(sorted(waiting[start:]))
                del waiting[start:]

        for module in self.imports:
            if module not in order:
                visit(module)
        return found

    def arrows(self, circle: list[str]) -> str:
        """Return the imports within a circle, one module a line, as a message."""
        return "\n".join(
            f"{module} -> {', '.join(sorted(self.imports[module] & set(circle)))}"
            for module in circle
        )


@functools.cache
def _house() -> House:
    files = {}
    for folder in ("wire", "embedlog"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT)).removesuffix(".py").removesuffix("/__init__")
            files[name.replace("/", ".")] = path
    return House(files)


@functools.cache
def _room(module: str) -> str:
    rooms = " ".join(FLOORS).split()
    found = [r for r in rooms if module == r or (r != "embedlog" and module.startswith(r + "."))]
    assert found, f"{module} has no room: name it in FLOORS"
    return max(found, key=len)


def test_every_import_leads_down() -> None:
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms.split()}
    up = [
        f"{module} imports {target}"
        for module, targets in _house().imports.items()
        for target in sorted(targets)
        if floor[_room(target)] < floor[_room(module)]
    ]
    assert not up, "\n".join(up)


def _top() -> House:
    """The rooms that FLOORS name, and the arrows between them."""
    rooms = House({})
    for module, targets in _house().imports.items():
        known = rooms.imports.setdefault(_room(module), set())
        known |= {_room(target) for target in targets} - {_room(module)}
    return rooms


@functools.cache
def _inside(package: str) -> House:
    """The rooms of a package, and the arrows between them; "" is the whole house."""

    def room(module: str) -> str:
        if not package:
            return "wire" if module.startswith("wire") else ".".join(module.split(".")[:2])
        parts = module.split(".")[: package.count(".") + 2]
        return ".".join(parts) if module.startswith(f"{package}.") else ""

    rooms = House({})
    for module, targets in _house().imports.items():
        if room(module):
            known = rooms.imports.setdefault(room(module), set())
            known |= {room(target) for target in targets} - {room(module), ""}
    return rooms


@functools.cache
def _packages() -> list[str]:
    return sorted({module.rpartition(".")[0] for module in _house().imports} - {""})


def test_no_circle_of_rooms() -> None:
    for house in (_top(), *map(_inside, _packages())):
        assert not house.circles(), "\n".join(map(house.arrows, house.circles()))


def test_large_packages_have_floors() -> None:
    large = {each for each in _packages() if len(_inside(each).imports) >= LARGE}
    # The files of these are alike and stand side by side.
    assert large - {"wire.schemas", "embedlog.broker.apis"} - {"embedlog"} == INNER_FLOORS.keys()


@pytest.mark.parametrize("package", INNER_FLOORS)
def test_every_import_inside_a_package_leads_down(package: str) -> None:
    floor = {
        f"{package}.{room}": number
        for number, rooms in enumerate(INNER_FLOORS[package])
        for room in rooms.split()
    }
    house = _inside(package)
    assert floor.keys() == house.imports.keys()
    up = [
        f"{room} imports {target}"
        for room, targets in house.imports.items()
        for target in sorted(targets)
        if floor[target] <= floor[room]
    ]
    assert not up, "\n".join(up)


@pytest.mark.parametrize("package", ARROWS_MAX)
def test_rooms_know_few_others(package: str) -> None:
    assert sum(map(len, _inside(package).imports.values())) <= ARROWS_MAX[package]


def test_no_circle_of_files() -> None:
    house = _house()
    assert not house.circles(), "\n\n".join(map(house.arrows, house.circles()))


def _all(*folders: str) -> list[Import]:
    paths: list[Path] = []
    for folder in folders:
        target = ROOT / folder
        paths.extend([target] if target.is_file() else sorted(target.rglob("*.py")))
    assert paths, folders
    return [found for path in paths for found in _imports(path)]


def _refuse(imports: list[Import], *prefixes: str, allow: tuple[str, ...] = ()) -> None:
    broken = [i for i in imports if i.reaches(*prefixes) and not (allow and i.reaches(*allow))]
    assert not broken, "\n".join(map(repr, broken))


def _that_run(imports: list[Import]) -> list[Import]:
    return [found for found in imports if found.runs]


def test_wire_never_imports_embedlog() -> None:
    _refuse(_all("wire"), "embedlog")


def test_only_wire_net_touches_sockets_threads_and_time() -> None:
    outside = [i for i in _all("wire") if not i.file.startswith("wire/net/")]
    _refuse(outside, *SOCKETS)


def test_schemas_hold_data_only() -> None:
    allowed = ("wire.schema", "wire.api_keys", "wire.error_codes", "__future__")
    broken = [i for i in _all("wire/schemas") if not i.reaches(*allowed)]
    assert not broken, "\n".join(map(repr, broken))
    for path in sorted((ROOT / "wire/schemas").glob("*.py")):
        functions = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.For)
        ]
        assert not functions, f"{path}: logic in a schema file"


def test_only_runtime_reaches_the_operating_system() -> None:
    outside = [i for i in _all("embedlog") if not i.file.startswith("embedlog/runtime/")]
    _refuse([i for i in outside if (i.file, i.module) not in AROUND_RUNTIME], *OPERATING_SYSTEM)
    used = {(i.file, i.module) for i in outside} & AROUND_RUNTIME
    assert used == AROUND_RUNTIME, f"strike from the table: {AROUND_RUNTIME - used}"


def test_no_thread_is_started_outside_runtime() -> None:
    for path in sorted((ROOT / "embedlog").rglob("*.py")):
        if path.is_relative_to(ROOT / "embedlog/runtime"):
            continue
        if not any(name in path.read_text() for name in THREAD_MAKERS):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            assert name not in THREAD_MAKERS, f"{path}: {name}("


def test_storage_knows_records_and_nothing_above_them() -> None:
    storage = _all("embedlog/storage")
    _refuse(
        storage,
        "embedlog.purgatory",
        "embedlog.controller",
        "embedlog.coordinator",
        "embedlog.broker",
        "embedlog.client",
        "embedlog.transport",
    )
    _refuse(storage, "wire", allow=("wire.records",))


def test_purgatory_imports_runtime_and_pending_only() -> None:
    allowed = ("embedlog.runtime", "embedlog.purgatory")
    _refuse(_all("embedlog/purgatory"), "embedlog", allow=allowed)
    _refuse(_all("embedlog/purgatory"), "wire")


def test_replication_and_controller_do_not_know_each_other() -> None:
    _refuse(_all("embedlog/replication"), "embedlog.controller", "embedlog.broker")
    _refuse(_all("embedlog/controller"), "embedlog.replication", "embedlog.broker")


def test_runtime_imports_only_common_rooms() -> None:
    allowed = ("embedlog.runtime", "embedlog.runtime.pending", "embedlog.errors", "embedlog.common")
    _refuse(_all("embedlog/runtime"), "embedlog", allow=allowed)


def test_an_api_file_imports_no_other_api_file_and_no_storage() -> None:
    apis = _all("embedlog/broker/apis")
    _refuse(apis, "embedlog.broker.apis", "embedlog.storage")


def test_the_broker_imports_neither_servers_nor_clients() -> None:
    _refuse(
        _all("embedlog/broker"), "embedlog.client", "embedlog.server", "embedlog.cluster.cluster"
    )
    _refuse(_all("embedlog/server"), "embedlog.client", "embedlog.cluster.cluster")


def test_clients_know_only_a_transport() -> None:
    _refuse(
        _all("embedlog/client"),
        "embedlog.broker",
        "embedlog.storage",
        "embedlog.controller",
        "embedlog.coordinator",
    )


def test_nothing_imports_the_leaves() -> None:
    leaves = ("embedlog.spark", "embedlog.cli", "embedlog.testing", "embedlog.aio")
    outer = (
        "embedlog/testing/", "embedlog/cli/", "embedlog/aio/", "embedlog/spark/",
        "embedlog/__main__",
    )  # fmt: skip
    inner = [i for i in _all("embedlog") if not i.file.startswith(outer)]
    _refuse(inner, *leaves)


def test_the_asyncio_clients_know_only_the_blocking_clients() -> None:
    allowed = (
        "embedlog.aio",
        "embedlog.client",
        "embedlog.common",
        "embedlog.errors",
        "embedlog.runtime.pending",
        "embedlog.runtime",
    )
    _refuse(_all("embedlog/aio"), "embedlog", allow=allowed)
    _refuse(_all("embedlog/aio"), "wire")
    at_home = ("embedlog/aio/", "embedlog/testing/waits/aio.py", "embedlog/queue/working/tasks.py")
    outside = [i for i in _all("embedlog", "wire") if not i.file.startswith(at_home)]
    _refuse(outside, "asyncio")


def test_only_an_address_loads_wire_net() -> None:
    allowed = (
        "embedlog/server/addresses.py",
        "embedlog/cluster/cluster.py",
        "embedlog/transport.py",
        "embedlog/cli/",
        "embedlog/client/network/bootstrap.py",
        "embedlog/client/network/network_client.py",
        "embedlog/client/network/tls_settings.py",
        "embedlog/testing/proxy/",
        "embedlog/testing/toxics/",
    )
    outside = [i for i in _all("embedlog") if not i.file.startswith(allowed)]
    _refuse(_that_run(outside), "wire.net")


_LOADED_AFTER = """
import sys
before = set(sys.modules)
{code}
print("\\n".join(sorted(set(sys.modules) - before)))
"""


def _loads(code: str, tmp_path: Path) -> set[str]:
    script = _LOADED_AFTER.format(code=code)
    paths = [str(ROOT), *sys.path]
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {paths!r}\n{script}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    return set(done.stdout.split())


FAULTS = ("embedlog.cluster.faults", "embedlog.cluster.lone", "embedlog.cluster.door")
HEAVY = {"numpy", "asyncio", "pyspark", "dataclasses", "typing", "enum", "logging", "re"}


def test_import_embedlog_loads_nothing_heavy_and_no_socket(tmp_path: Path) -> None:
    loaded = _loads("import embedlog", tmp_path)
    assert not loaded & (HEAVY | {"socket", "threading", "selectors", "wire.net"})


def test_a_first_record_in_process_loads_no_numpy_and_no_socket(tmp_path: Path) -> None:
    loaded = _loads(
        "import embedlog\n"
        "with embedlog.open('data') as cluster:\n"
        "    with cluster.producer() as producer:\n"
        "        producer.send('events', b'value').result()\n",
        tmp_path,
    )
    assert not loaded & (HEAVY | {"socket", "selectors", "wire.net"})
    assert not {each for each in loaded if each.startswith(FAULTS)}


@pytest.mark.parametrize("module", ["numpy", "asyncio", "pyspark"])
def test_serving_loads_nothing_heavy(module: str, tmp_path: Path) -> None:
    loaded = _loads(
        "import embedlog\n"
        "cluster = embedlog.open()\n"
        "cluster.listen('127.0.0.1', 0)\n"
        "cluster.close()\n",
        tmp_path,
    )
    assert "wire.net.listener" in loaded
    assert module not in loaded
