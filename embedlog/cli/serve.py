"""`embedlog serve`: serve any Kafka client until a signal."""

from __future__ import annotations

import signal as system
from argparse import ArgumentParser, ArgumentTypeError, HelpFormatter
from signal import SIG_DFL, SIG_IGN, SIGINT, SIGTERM, getsignal, signal
from sys import stderr, stdout

from embedlog.cli import log_lines
from embedlog.errors import ConfigError, EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction
    from signal import Signals
    from typing import Any

    from embedlog.cli.controlled import ControlledListener
    from embedlog.cluster.cluster import Cluster
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.server.addresses import BrokerListener
    from embedlog.testing.kafka import Kafka

PORT = 9092
PORT_MAX = 65535

SURVIVES = {
    "memory": "nothing survives the end of this process",
    "os": "acknowledged records survive the end of this process, not a loss of power",
    "fsync": "acknowledged records survive a loss of power",
}
"""The promise of each durability level, in words."""


class CannotOpen(EmbedlogError):
    """The data directory cannot be opened; the message names it."""


class CannotListen(EmbedlogError):
    """The address cannot be served; the message names it."""


def main(arguments: list[str]) -> int:
    """Run the command. `arguments` begin with `serve`."""
    parser = ArgumentParser(prog="embedlog", formatter_class=help_formatter)
    add_command(parser.add_subparsers(metavar="COMMAND", required=True))
    run(parser.parse_args(arguments))
    return 0


def help_formatter(prog: str) -> HelpFormatter:
    """Return a formatter for 80 columns.

    argparse makes a formatter for each argument. By default a formatter asks for the terminal's
    width, which loads shutil and three compressors: 4 ms and 1 MB before the first request.
    """
    return HelpFormatter(prog, width=78)


def add_command(commands: _SubParsersAction[Any]) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "serve",
        help="serve a log to Kafka clients",
        description="Serve a log to Kafka clients until SIGINT, SIGTERM or SIGHUP.",
        formatter_class=help_formatter,
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="keep all data in DIR (default: the setting log.dirs, else in memory)",
    )
    parser.add_argument(
        "--log-dirs",
        type=_names,
        default=(),
        metavar="DIR,...",
        help="further directories on other disks, besides --data",
    )
    parser.add_argument(
        "--host", help="name or address to listen on (default: listeners, else 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=_port, help=f"port to listen on, 0 for any (default: listeners, else {PORT})"
    )
    parser.add_argument(
        "--brokers",
        type=_count,
        metavar="N",
        help="number of brokers (default: as in DIR, else 1), numbered from node.id on, at ports "
        "from --port on. The port in advertised.listeners counts up as well, or {id} stands for "
        "the broker's number: PLAINTEXT://kafka-{id}:9092",
    )
    parser.add_argument(
        "--racks", type=_names, default=(), metavar="A,B,...", help="the rack of each broker"
    )
    parser.add_argument(
        "--durability",
        choices=("os", "fsync"),
        help="acknowledged records survive the end of this process (os, the default), or also a "
        "loss of power (fsync); needs --data",
    )
    _add_settings(parser)
    log_lines.add_arguments(parser)
    parser.set_defaults(run=run)


def _add_settings(parser: ArgumentParser) -> None:
    """Declare the arguments that change what the brokers do."""
    parser.add_argument(
        "--config",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a broker setting by Kafka's name; may be repeated",
    )
    parser.add_argument(
        "--allow-remote-plaintext",
        action="store_true",
        help="listen on an address that other machines can reach; everybody there can then read, "
        "write and delete all data, without a password and without encryption",
    )
    parser.add_argument(
        "--instant",
        action="store_true",
        help="take the defaults of embedlog.open in place of Kafka's, for tests: the first answer "
        "about a new topic names its leaders, and a group does not wait for further members",
    )
    _add_control(parser)


def _add_control(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--control",
        type=_control,
        metavar="HOST:PORT",
        help="also serve the calls of the test kit as JSON over HTTP (see `embedlog ctl`); an "
        "address that other machines can reach needs a token in EMBEDLOG_CONTROL_TOKEN",
    )
    parser.add_argument(
        "--clock",
        choices=("real", "manual", "auto"),
        default="real",
        help="the brokers' time, with --control: the machine's (real, the default), moved by "
        "`embedlog ctl clock jump` as well (manual), or leaping while all clients wait (auto)",
    )


def run(arguments: Namespace) -> None:
    """Serve until a signal.

    Raises:
        EmbedlogError, OSError: the cluster cannot be opened or served.
    """
    if arguments.clock != "real" and arguments.control is None:
        raise ConfigError(f"--clock {arguments.clock} needs --control HOST:PORT")
    stopper = Stopper()
    end_log = log_lines.begin(arguments)
    try:
        cluster = _open(arguments)
        try:
            opened = _listen(cluster, arguments)
            kafka = _begin_control(cluster, opened, arguments)
            listener = opened if kafka is None else _controlled(kafka, opened, arguments)
            try:
                if stopper.will_stop(listener):
                    _say(*announcement(cluster, listener.address), *_control_lines(kafka))
                    listener.run()
            finally:
                if kafka is not None:
                    kafka.close()
        finally:
            cluster.close()
    finally:
        end_log()
    _say("embedlog: stopped")


class Stopper:
    """Turns SIGINT, SIGTERM and a closing terminal's SIGHUP into a clean stop.

    An ignored SIGHUP, as under nohup, stays ignored. Signals are handled from the construction on:
    a signal while the log is opened also stops the process cleanly. A second SIGINT or SIGTERM ends
    the process at once; a second SIGHUP does not, because closing terminals may send two.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._listener: BrokerListener | ClusterListener | ControlledListener | None = None
        self._closing = _closing_signals()
        for number in (SIGINT, SIGTERM, *self._closing):
            signal(number, self._on_signal)

    def will_stop(self, listener: BrokerListener | ClusterListener | ControlledListener) -> bool:
        """Let signals stop `listener`. If one came before, close the listener and return False."""
        self._listener = listener
        if hasattr(system, "SIGBREAK"):
            # On Windows a signal alone does not end a wait for sockets.
            system.set_wakeup_fd(listener.signal_fd, warn_on_full_buffer=False)
        if self._is_asked:
            listener.close()
        return not self._is_asked

    def _on_signal(self, *_: object) -> None:
        self._is_asked = True
        for number in (SIGINT, SIGTERM):
            signal(number, SIG_DFL)
        for number in self._closing:
            signal(number, SIG_IGN)
        if self._listener is not None:
            self._listener.stop()


def _closing_signals() -> list[Signals]:
    """Return the signals of a closing terminal that exist and are not ignored."""
    # A Windows console sends SIGBREAK.
    found = [getattr(system, name, None) for name in ("SIGHUP", "SIGBREAK")]
    return [each for each in found if each is not None and getsignal(each) is not SIG_IGN]


def announcement(cluster: Cluster, address: str) -> list[str]:
    """Return the lines for the user: the addresses, the durability, and how to stop."""
    advertised = []
    if cluster.config.is_set("advertised.listeners"):
        told = (
            f"{host}:{port}" for each in cluster.brokers for _, host, port in each.core.endpoints
        )
        advertised = [f"embedlog: clients get {','.join(told)}, from advertised.listeners"]
    place = "everything is kept in memory"
    if cluster.path:
        place = f"data in {', '.join((cluster.path, *cluster.log_dirs))}"
    return [
        f"embedlog: listening on {address}",
        *advertised,
        f"embedlog: {place}; durability {cluster.durability}: {SURVIVES[cluster.durability]}",
        "embedlog: stop with Ctrl-C or SIGTERM",
    ]


def _open(arguments: Namespace) -> Cluster:
    from warnings import catch_warnings, simplefilter

    from embedlog.cluster.cluster import Cluster

    (directory, *log_dirs), durability = _directories(arguments), arguments.durability
    runtime = None
    if arguments.control is not None:
        from embedlog.cli.controlled import runtime_of

        runtime = runtime_of(arguments.clock, on_disk=directory is not None)
    if durability is None and directory is not None:
        durability = dict(arguments.config).get("embedlog.durability", "os")
    with catch_warnings(record=True) as warnings:
        simplefilter("always")
        try:
            cluster = Cluster(
                directory,
                dict(arguments.config),
                brokers=arguments.brokers,
                racks=arguments.racks,
                log_dirs=[each for each in log_dirs if each is not None],
                durability=durability,
                is_embedded=arguments.instant,
                runtime=runtime,
            )
        except (FileExistsError, NotADirectoryError):
            raise CannotOpen(f"{directory}: not a directory") from None
    for warning in warnings:
        _warn(arguments, f"warning: {warning.message}")
    return cluster


def _directories(arguments: Namespace) -> list[str | None]:
    """Return the log directories, from `--data` and `--log-dirs` or from Kafka's settings.

    The first entry is None for a cluster in memory.
    """
    from embedlog.storage.directory.data_path import data_directory

    if arguments.data is not None:
        return [data_directory(arguments.data), *arguments.log_dirs]
    settings = dict(arguments.config)
    named: str = settings.get("log.dirs") or settings.get("log.dir") or ""
    first, *others = [each.strip() for each in named.split(",")]
    return [data_directory(first or None), *others, *arguments.log_dirs]


def _listen(cluster: Cluster, arguments: Namespace) -> BrokerListener | ClusterListener:
    from embedlog.server.addresses import listen
    from embedlog.server.advertising import address_of

    host, port, is_remote = arguments.host, arguments.port, arguments.allow_remote_plaintext
    try:
        named = None
        if cluster.config.is_set("listeners"):
            named = address_of(cluster.config, "listeners")
        is_any_host = host is None and named is not None and not named[0]
        if len(cluster.brokers) > 1 or arguments.control is not None:
            if port is None and named is None:
                port = PORT
            return cluster.listen(host, port, allow_remote_plaintext=is_remote)
        listener = listen(
            cluster.broker().core, host, port, allow_remote_plaintext=is_remote, default_port=PORT
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotListen(f"cannot listen on {error.filename}: {reason}") from None
    if is_any_host and not is_remote:
        _warn(
            arguments,
            "listeners names no host: only this machine can connect "
            "(every other with --allow-remote-plaintext)",
        )
    return listener


def _begin_control(
    cluster: Cluster, listener: BrokerListener | ClusterListener, arguments: Namespace
) -> Kafka | None:
    """Open the control door on request, and return the test kit's view of the cluster."""
    if arguments.control is None:
        return None
    from embedlog.runtime.environment import variable
    from embedlog.testing.kafka import Kafka
    from embedlog.testing.shape import Shape

    host, port = arguments.control
    shape = Shape(
        brokers=len(cluster.brokers),
        racks=arguments.racks,
        config=dict(arguments.config),
        instant=arguments.instant,
        clock=arguments.clock,
        path=cluster.path,
    )
    kafka = Kafka(shape, cluster=cluster, listener=listener)
    try:
        kafka.listen_control(host, port, variable("EMBEDLOG_CONTROL_TOKEN"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotListen(f"cannot serve control on {host}:{port}: {reason}") from None
    return kafka


def _controlled(
    kafka: Kafka, opened: BrokerListener | ClusterListener, arguments: Namespace
) -> ControlledListener:
    from embedlog.cli.controlled import ControlledListener

    return ControlledListener(kafka, opened, is_remote=arguments.allow_remote_plaintext)


def _control_lines(kafka: Kafka | None) -> list[str]:
    if kafka is None:
        return []
    url = kafka.control().url
    return [f"embedlog: control at {url}; its calls are at {url}/openapi.json"]


def _warn(arguments: Namespace, message: str) -> None:
    """Warn the user of a probable mistake."""
    if arguments.log_format == "json":
        from embedlog.logger import Logger

        Logger("cli").warning("%s", message.removeprefix("warning: "))
    elif log_lines.level_of(arguments) != "error":
        print(f"embedlog: {message}", file=stderr)


def _say(*lines: str) -> None:
    """Print lines; a closed standard output is no error."""
    try:
        stdout.write("".join(f"{line}\n" for line in lines))
        stdout.flush()
    except OSError:
        return


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > PORT_MAX:
        raise ArgumentTypeError(f"{text!r} is not a port: 0 to {PORT_MAX}")
    return int(text)


def _control(text: str) -> tuple[str, int]:
    host, mark, port = text.rpartition(":")
    if not mark or not host:
        raise ArgumentTypeError(f"{text!r} is not of the form HOST:PORT")
    return host.strip("[]"), _port(port)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of brokers")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
