"""The parts of the test kit's book that come from code: `python -m tests.support.book` writes them.

A page of recipes quotes the tests of one file in `tests/testing/recipes`: the first line of a
test's docstring is the heading, the rest is the text. The tables of `docs/testing-support.md` come
from the tables of the brokers and of the test kit. `tests/testing/test_book.py` compares.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPES = ROOT / "tests/testing/recipes"
PAGES = ROOT / "docs/testing"
SUPPORT = ROOT / "docs/testing-support.md"
THEMES = (
    "producing",
    "groups",
    "reading",
    "processing",
    "brokers",
    "suites",
    "languages",
)
"""The files of recipes, in the order of the book."""
_COLUMNS = 4


@cache
def pages() -> dict[Path, str]:
    """Return the generated documents, by path."""
    made = {PAGES / f"recipes-{theme}.md": _page(theme) for theme in THEMES}
    made[PAGES / "recipes.md"] = _index()
    made[SUPPORT] = with_tables(SUPPORT.read_text())
    return made


# Recipes


def recipes(theme: str) -> list[tuple[str, str, str]]:
    """Return heading, text and code of each recipe of a file."""
    source = _path(theme).read_text()
    found, helpers = [], []
    for node in ast.parse(source).body:
        is_recipe = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if is_recipe:
            assert isinstance(node, ast.FunctionDef)
            heading, _, text = (ast.get_docstring(node) or "").partition("\n")
            assert text, f"{theme}: {node.name} has no text"
            code = [*helpers, _without_docstring(source, node)]
            found.append((heading, text.strip(), "\n\n\n".join(code)))
            helpers = []
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            helpers.append(_code(source, node))
    assert not helpers, f"{theme}: code after the last recipe"
    return found


def _path(theme: str) -> Path:
    return RECIPES / f"test_{theme}.py"


def _page(theme: str) -> str:
    source = _path(theme).read_text()
    title = (ast.get_docstring(ast.parse(source)) or "").strip()
    parts = [
        f"# {title.rstrip('.')}",
        f"<!-- Made by `python -m tests.support.book` from {_path(theme).relative_to(ROOT)} -->",
        "[All recipes](recipes.md), with the service and the fixtures that they use.",
    ]
    if prelude := _prelude(source):
        parts.append(f"```python\n{prelude}\n```")
    for heading, text, code in recipes(theme):
        parts += [f"## {heading}", text, f"```python\n{code}\n```"]
    return "\n\n".join(parts) + "\n"


def _prelude(source: str) -> str:
    """Return the imports and constants that recipes use."""
    lines = []
    for node in ast.parse(source).body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if is_import and getattr(node, "module", "") == "__future__":
            continue
        is_constant = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).isupper()
        if is_import or is_constant:
            lines.append(_code(source, node))
    return "\n".join(lines)


def _code(source: str, node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", ())
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _without_docstring(source: str, node: ast.FunctionDef) -> str:
    docstring = node.body[0]
    start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    lines = source.splitlines()
    head = lines[start - 1 : docstring.lineno - 1]
    return "\n".join([*head, *lines[docstring.end_lineno : node.end_lineno]])


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _index() -> str:
    services = (RECIPES / "services.py").read_text()
    first = next(
        node
        for node in ast.parse(services).body
        if isinstance(node, ast.ClassDef) and node.name == "WithConfluent"
    )
    fixtures = (RECIPES / "conftest.py").read_text()
    wanted = [node for node in ast.parse(fixtures).body if isinstance(node, ast.FunctionDef)]
    parts = [
        "# Recipes",
        "<!-- Made by `python -m tests.support.book` -->",
        textwrap.dedent(
            """\
            Every recipe is a test of this project: the pages quote `tests/testing/recipes`. Copy
            one, and put your code in the place of `service`, `producer` and `consumer`."""
        ),
    ]
    for theme in THEMES:
        title = (ast.get_docstring(ast.parse(_path(theme).read_text())) or "").strip().rstrip(".")
        page = f"recipes-{theme}.md"
        links = [f"- [{name}]({page}#{_anchor(name)})" for name, _, _ in recipes(theme)]
        parts += [f"## [{title}]({page})", "\n".join(links)]
    parts += [
        "## The service and the fixtures",
        "`service` is a small service, written three times: recipes that use it run with "
        "confluent-kafka, kafka-python and aiokafka. This is the first:",
        f"```python\n{_code(services, first)}\n```",
        "The fixtures:",
        "```python\n" + "\n\n\n".join(_code(fixtures, node) for node in wanted) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


# Tables


def with_tables(text: str) -> str:
    """Return the document of support with its tables renewed."""
    makers = {"apis": _apis, "clients": _clients, "personas": _personas, "presets": _presets}
    for name, make in makers.items():
        table = make()
        pattern = rf"(<!-- table {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(
            pattern, lambda found, t=table: f"{found[1]}\n{t}\n\n{found[2]}", text, flags=re.DOTALL
        )
        assert count == 1, f"{SUPPORT.name} has no table {name}"
    return text


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def _apis() -> str:
    from embedlog.broker.dispatch import VERSIONS
    from wire.api_keys import NAMES

    cells = [
        f"{NAMES[key]} {first}-{last}" if first != last else f"{NAMES[key]} {last}"
        for key, (first, last) in sorted(VERSIONS.items())
    ]
    cells += [""] * (-len(cells) % _COLUMNS)
    rows = [cells[at : at + _COLUMNS] for at in range(0, len(cells), _COLUMNS)]
    return _table(["API and versions", *[""] * (_COLUMNS - 1)], rows)


def _clients() -> str:
    from embedlog.testing.clients.kinds import KINDS

    return _table(
        ["`client_config(...)`", "other names", "settings for a consumer"],
        [
            (
                f"`{kind.name}`",
                ", ".join(f"`{each}`" for each in kind.aliases),
                ", ".join(f"`{name}`" for name in kind.roles["consumer"]),
            )
            for kind in KINDS
        ],
    )


def _personas() -> str:
    from embedlog.testing import personas
    from embedlog.testing.personas.tables import TABLE

    names = re.findall(r"^([a-z]\S*)$", TABLE, re.MULTILINE)
    shown = ("Produce", "Fetch", "Metadata", "JoinGroup", "ConsumerGroupHeartbeat")

    def versions(name: str, api: str) -> str:
        found = personas.named(name).versions.get(api)
        return "-" if found is None else f"{found[0]}-{found[1]}"

    return _table(
        ["persona", *shown],
        [(f"`{name}`", *(versions(name, api) for api in shown)) for name in names],
    )


def _presets() -> str:
    from embedlog.testing.faults.presets import Presets

    found = {
        name: (each.__doc__ or "").split("\n")[0]
        for name, each in vars(Presets).items()
        if not name.startswith("_") and name != "add"
    }
    return _table(["`kafka.faults`", ""], [(f"`{name}()`", text) for name, text in found.items()])


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
