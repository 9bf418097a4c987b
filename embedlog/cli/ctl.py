"""`embedlog ctl`: make the calls of a control door from a shell.

    embedlog ctl                              list the calls
    embedlog ctl topic                        list the calls of topics
    embedlog ctl fault add --help             explain a call
    embedlog ctl fault add Produce --topic orders --error NOT_ENOUGH_REPLICAS --times 2
    embedlog ctl fault wait fault-1 2
    embedlog ctl network split 1 2,3
    embedlog ctl wait group billing --members 2
    embedlog ctl group commit billing orders-0=5

The door tells its calls and their parameters. Positional words are parameters in order, options are
parameters by name. Values are read by their types; a list is separated by commas, or JSON. Exit
status: 0 after success, 1 if the door refuses the call, 2 if the call is wrong or nothing answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import click

from embedlog.cli.exit_status import EXIT_REFUSED
from embedlog.errors import EmbedlogError
from embedlog.testing.control.client import ControlClient, ControlError

_CALLED_WRONGLY = range(400, 409)
_TRUE, _FALSE = {"true", "yes", "1"}, {"false", "no", "0"}


class CalledWrongly(EmbedlogError):
    """The words are no call of the door."""


def run(url: str, token: str | None, words: Sequence[str], as_json: bool) -> int:
    """Make one call, and return the exit status. `as_json`: print the result as one JSON value.

    Raises:
        EmbedlogError: the words are no call, or nothing answers at `url`.
    """
    client = ControlClient(url, token)
    try:
        verbs = {each["name"]: each for each in client.get("/verbs")["verbs"]}
        if not words:
            click.echo("\n".join(_listed(each) for each in verbs.values()))
            return 0
        below = _below(verbs, words)
        if below:
            click.echo("\n".join(map(_listed, below)))
            return 0
        verb, rest = _verb(verbs, words)
        if "--help" in rest:
            click.echo(f"{_listed(verb)}\n\n{verb['text']}")
            return 0
        value = client.call(verb["path"], arguments_of(verb, rest))
    except ControlError as error:
        if error.status in _CALLED_WRONGLY:
            raise CalledWrongly(str(error)) from None
        click.echo(f"embedlog: {error.error}: {error}", err=True)
        return EXIT_REFUSED
    text = json.dumps(value, ensure_ascii=False) if as_json else _shown(value)
    if text:
        click.echo(text)
    return 0


def _below(verbs: Mapping[str, Mapping[str, Any]], words: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the calls that begin with the words, if the words are no call themselves."""
    named = " ".join(each for each in words if each != "--help")
    if named in verbs:
        return []
    return [each for name, each in verbs.items() if name.startswith(f"{named} ")]


def _verb(
    verbs: Mapping[str, Mapping[str, Any]], words: Sequence[str]
) -> tuple[Mapping[str, Any], list[str]]:
    """Return the verb that the first words name, and the rest."""
    for count in range(len(words), 0, -1):
        found = verbs.get(" ".join(words[:count]))
        if found is not None:
            return found, list(words[count:])
    plain = [each for each in words if not each.startswith("-")]
    tried = [" ".join(plain[:count]) for count in (3, 2, 1)]
    near = [match for each in tried for match in get_close_matches(each, verbs, 1)]
    hint = f"did you mean {near[0]!r}?" if near else "`embedlog ctl` lists all"
    raise CalledWrongly(f"there is no call {' '.join(words)!r}; {hint}")


def arguments_of(verb: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Return the arguments that words and options give, as JSON.

    Raises:
        CalledWrongly: a word is no value of its parameter, or there is no such parameter.
    """
    schemas = {each["name"]: each["schema"] for each in verb["parameters"]}
    found: dict[str, Any] = {}
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            positional.append(word)
            continue
        option, is_joined, text = word[2:].partition("=")
        name = option.replace("-", "_")
        schema = _schema(verb, schemas, name)
        if not is_joined:
            is_flag = _is_flag(schema) or not rest or rest[0].startswith("--")
            text = "true" if is_flag else rest.pop(0)
        found[name] = _value(name, text, schema)
    for each in verb["parameters"]:
        if each["name"] in found or each["keyword"]:
            continue
        if each["many"]:
            items = each["schema"]["items"]
            found[each["name"]] = [_value(each["name"], word, items) for word in positional]
            positional = []
        elif positional:
            found[each["name"]] = _value(each["name"], positional.pop(0), each["schema"])
    if positional:
        raise CalledWrongly(f"{_listed(verb)}: {positional[0]!r} is one value too much")
    return found


def _schema(verb: Mapping[str, Any], schemas: Mapping[str, Any], name: str) -> Any:
    if name in schemas or verb["open"]:
        return schemas.get(name, {})
    near = get_close_matches(name, schemas, 1)
    option = near[0].replace("_", "-") if near else ""
    hint = f"did you mean --{option}?" if near else f"see {_listed(verb)}"
    raise CalledWrongly(f"{verb['name']} has no option --{name.replace('_', '-')}; {hint}")


def _is_flag(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "boolean"


def _value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    try:
        return _read(text, schema)
    except ValueError:
        kind = schema.get("type") or " or ".join(each.get("type", "") for each in schema["anyOf"])
        raise CalledWrongly(f"{name}: {text!r} is no {kind}") from None


def _read(text: str, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind == "string":
        return text
    if kind == "integer":
        return int(text)
    if kind == "number":
        return float(text)
    if kind == "boolean" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if kind == "null" and text == "null":
        return None
    if kind == "array":
        if text.startswith("["):
            return json.loads(text)
        inner = schema.get("prefixItems", schema.get("items", {}))
        parts = [each for each in text.split(",") if each]
        kinds = inner if isinstance(inner, list) else [inner] * len(parts)
        if len(kinds) != len(parts):
            raise ValueError(text)
        return [_read(part, kind) for part, kind in zip(parts, kinds, strict=True)]
    if kind == "object":
        return _object(text, schema)
    if "anyOf" in schema:
        for each in schema["anyOf"]:
            try:
                return _read(text, each)
            except ValueError:
                continue
    if kind is not None or "anyOf" in schema:
        raise ValueError(text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _object(text: str, schema: Mapping[str, Any]) -> Any:
    """Read JSON, or `name=value,name=value`."""
    if text.startswith("{"):
        return json.loads(text)
    pairs = [each.partition("=") for each in text.split(",")]
    if not all(mark for _, mark, _ in pairs):
        raise ValueError(text)
    values = schema.get("additionalProperties", {})
    return {name: _read(value, values) for name, _, value in pairs}


def _listed(verb: Mapping[str, Any]) -> str:
    """Return the call with its parameters in one line."""
    parts = [verb["name"]]
    for each in verb["parameters"]:
        option, name = each["name"].replace("_", "-"), each["name"].upper()
        if each["keyword"]:
            parts.append(f"[--{option}]" if _is_flag(each["schema"]) else f"[--{option} {name}]")
        elif each["many"]:
            parts.append(f"[{name}...]")
        else:
            parts.append(name if each["required"] else f"[{name}]")
    if verb["open"]:
        parts.append("[--OPTION VALUE...]")
    return " ".join(parts)


def _shown(value: Any) -> str:
    """Return a result for people: items of a list one a line, bytes as text."""
    if isinstance(value, list) and value:
        return "\n".join(_line(each) for each in value)
    if isinstance(value, dict) and "@kept" in value:
        return str(value["@kept"])
    return "" if value is None else _line(value)


def _line(value: Any) -> str:
    if isinstance(value, dict) and "@kept" in value:
        return f"{value['@kept']}  {value['@repr']}"
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return JSON with texts in place of bytes that are text."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"@text"}:
        return value["@text"]
    return {name: _plain(each) for name, each in value.items()}
