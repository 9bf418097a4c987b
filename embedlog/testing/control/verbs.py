"""Nouns and verbs: objects of the test kit by name, and their methods with typed parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from types import MemberDescriptorType
from typing import Any

from embedlog.testing.control.types import ANY, Kept, ParameterType, WrongValue, type_of

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_MANY = inspect.Parameter.VAR_POSITIONAL
_OPEN = inspect.Parameter.VAR_KEYWORD


class WrongCall(ValueError):
    """A call that no verb takes. `near` has the names that were probably meant."""

    def __init__(self, message: str, near: Iterable[str] = ()) -> None:
        self.near = list(near)
        hint = f"; did you mean {self.near[0]!r}?" if self.near else ""
        super().__init__(message + hint)


class UnknownVerb(WrongCall):
    """There is no verb of this name."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a verb."""

    name: str
    type: ParameterType
    is_required: bool
    is_keyword: bool
    """Whether a caller must name it."""
    is_many: bool = False
    """Whether it takes any number of values, in JSON as an array."""
    default: Any = None

    @classmethod
    def of(cls, given: inspect.Parameter) -> Parameter:
        """Read a parameter of a signature."""
        kind = type_of(str(given.annotation)) if given.annotation is not given.empty else ANY
        is_many = given.kind == _MANY
        return cls(
            given.name,
            ParameterType("array", (kind,)) if is_many else kind,
            given.default is given.empty and not is_many,
            given.kind == _KEYWORD,
            is_many,
            None if given.default is given.empty else given.default,
        )

    def described(self) -> dict[str, Any]:
        """Return the parameter as JSON, for clients in other languages."""
        schema = self.type.schema()
        if not self.is_required and isinstance(self.default, str | int | float | bool):
            schema = {**schema, "default": self.default}
        return {
            "name": self.name,
            "schema": schema,
            "required": self.is_required,
            "keyword": self.is_keyword,
            "many": self.is_many,
        }


def _parameters(function: Callable[..., Any]) -> tuple[list[Parameter], bool]:
    """Return the parameters after the first, and whether the function takes any others."""
    found = list(inspect.signature(function).parameters.values())[1:]
    is_open = any(each.kind == _OPEN for each in found)
    return [Parameter.of(each) for each in found if each.kind != _OPEN], is_open


@dataclass(frozen=True)
class Noun:
    """An object of the test kit by name, and the methods and values that the door offers.

        Noun("partition", ClusterPartition, "leader isr move_to", reach=_partition)

    `reach(kafka, ...)` returns the object; its parameters are parameters of every verb. Without it
    the door keeps the objects that calls return, and `id` chooses one. `key` returns the arguments
    of `reach` for an object in an answer.
    """

    name: str
    of: type
    offered: str
    """Names of methods and properties; a name with a dot before it is an attribute of objects."""
    reach: Callable[..., Any] | None = None
    key: Callable[[Any], Mapping[str, Any]] | None = None

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The parameters of `reach`."""
        if self.reach is None:
            return [Parameter("id", ParameterType("string"), True, False)]
        return _parameters(self.reach)[0]

    def verbs(self) -> Iterator[Verb]:
        """Yield a verb for each offered name."""
        for name in self.offered.split():
            yield Verb.of(self, name)

    def object(self, kafka: Any, arguments: Mapping[str, Any], kept: Kept) -> Any:
        """Return the object that the arguments choose."""
        if self.reach is None:
            found = kept(arguments["id"])
            if not isinstance(found, self.of):
                raise WrongCall(f"id: {arguments['id']!r} is no {self.name}")
            return found
        return self.reach(kafka, **arguments)


@dataclass(frozen=True)
class Verb:
    """One call."""

    noun: Noun
    attribute: str
    is_value: bool
    """Whether it only reads a value."""
    text: str
    own: list[Parameter] = field(default_factory=list)
    """The parameters of the method."""
    is_open: bool = False
    """Whether the method takes further parameters by name, which it checks itself."""

    @classmethod
    def of(cls, noun: Noun, name: str) -> Verb:
        """Read a verb from the class of its noun.

        Raises:
            AttributeError: the class has no such attribute.
        """
        if name.startswith("."):
            return cls(noun, name[1:], True, f"The attribute `{name[1:]}`.")
        found = inspect.getattr_static(noun.of, name)
        text = inspect.getdoc(found) or f"The attribute `{name}`."
        if isinstance(found, property | cached_property | MemberDescriptorType):
            is_slot = isinstance(found, MemberDescriptorType)
            return cls(noun, name, True, f"The attribute `{name}`." if is_slot else text)
        own, is_open = _parameters(found)
        return cls(noun, name, False, text, own, is_open)

    @property
    def name(self) -> str:
        """The words of the call, such as "broker disk fail"."""
        return f"{self.noun.name} {self.attribute}".strip()

    @property
    def path(self) -> str:
        """The path of the call, such as "/v1/broker/disk/fail"."""
        return "/v1/" + self.name.replace(" ", "/")

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, the noun's first."""
        return [*self.noun.parameters, *self.own]

    def call(self, kafka: Any, given: Mapping[str, Any], kept: Kept) -> Any:
        """Make the call with arguments of JSON.

        Raises:
            WrongCall: an argument is unknown, missing, or of another type.
        """
        values = self._values(given, kept)
        names = {each.name for each in self.noun.parameters}
        owner = self.noun.object(
            kafka, {name: value for name, value in values.items() if name in names}, kept
        )
        found = getattr(owner, self.attribute)
        if self.is_value:
            return found
        many = [value for each in self.own if each.is_many for value in values.pop(each.name, ())]
        rest = {name: value for name, value in values.items() if name not in names}
        if many:
            # Positional arguments come before them.
            first = [
                rest.pop(each.name)
                for each in self.own
                if not each.is_keyword and not each.is_many and each.name in rest
            ]
            return found(*first, *many, **rest)
        try:
            return found(**rest)
        except TypeError as error:
            if self.is_open and not rest.keys() <= {each.name for each in self.own}:
                raise WrongCall(f"{self.name}: {error}") from None
            raise

    def _values(self, given: Mapping[str, Any], kept: Kept) -> dict[str, Any]:
        known = {each.name: each for each in self.parameters}
        values = {}
        for name, value in given.items():
            parameter = known.get(name)
            if parameter is None and not self.is_open:
                near = get_close_matches(name, known, 1)
                listed = ", ".join(known) or "none"
                raise WrongCall(f"{self.name} has no parameter {name!r}, but {listed}", near)
            try:
                values[name] = (parameter.type if parameter else ANY).value(value, kept)
            except WrongValue as error:
                raise WrongCall(f"{self.name}: {name}: {error}") from None
        required = [each.name for each in known.values() if each.is_required]
        missing = [name for name in required if name not in values]
        if missing:
            raise WrongCall(f"{self.name} needs {', '.join(missing)}")
        return values

    def described(self) -> dict[str, Any]:
        """Return the verb as JSON, for clients in other languages."""
        return {
            "name": self.name,
            "path": self.path,
            "method": "GET" if self.is_value else "POST",
            "text": self.text,
            "parameters": [each.described() for each in self.parameters],
            "open": self.is_open,
        }


class Table:
    """All nouns and verbs."""

    def __init__(self, nouns: Iterable[Noun]) -> None:
        self.nouns = {each.name: each for each in nouns}
        self.verbs = {verb.name: verb for noun in self.nouns.values() for verb in noun.verbs()}

    def verb(self, name: str) -> Verb:
        """Return a verb.

        Raises:
            UnknownVerb: there is none of this name.
        """
        found = self.verbs.get(name)
        if found is None:
            near = get_close_matches(name, self.verbs, 3)
            raise UnknownVerb(f"there is no verb {name!r}", near)
        return found

    def noun_of(self, value: object) -> Noun | None:
        """Return the noun whose objects `value` is one of; None if there is none."""
        for noun in self.nouns.values():
            if isinstance(value, noun.of) and (noun.reach is None or noun.key is not None):
                return noun
        return None

    def described(self) -> dict[str, Any]:
        """Return everything as JSON, for clients."""
        return {
            "nouns": [
                {
                    "name": each.name,
                    "parameters": [parameter.described() for parameter in each.parameters],
                    "is_kept": each.reach is None,
                }
                for each in self.nouns.values()
            ],
            "verbs": [each.described() for each in self.verbs.values()],
        }
