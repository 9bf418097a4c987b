"""Nouns and verbs: objects of the test kit by name, and their methods with typed parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, partial
from types import MemberDescriptorType
from typing import Any

from embedlog.testing.control.kept import KeptObjects
from embedlog.testing.control.tags import WrongValue
from embedlog.testing.control.types import ANY, ParameterType, type_of
from embedlog.testing.faults.options import FaultOptions, TriggerOptions

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_MANY = inspect.Parameter.VAR_POSITIONAL
_OPEN = inspect.Parameter.VAR_KEYWORD
_OPTIONS = {"Unpack[FaultOptions]": FaultOptions, "Unpack[TriggerOptions]": TriggerOptions}
"""The parameters that an annotation of `**given` stands for."""


LIST, FORGET = "list", "forget"
INNER = "only a test in the process of the cluster can call it"
"""The reason for the lack of calls that take or return functions, clients and other objects."""


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


def _parameters(
    function: Callable[..., Any], like: Callable[..., Any] | None = None
) -> tuple[list[Parameter], bool]:
    """Return the parameters after the first, and whether the function takes any others.

    The function takes the parameters of `like` by name.
    """
    found = list(inspect.signature(function).parameters.values())[1:]
    named = [Parameter.of(each) for each in found if each.kind != _OPEN]
    rest = [each for each in found if each.kind == _OPEN]
    if not rest:
        return named, False
    options = _OPTIONS.get(str(rest[0].annotation))
    if options is not None:
        for name, annotation in options.__annotations__.items():
            kind = type_of(getattr(annotation, "__forward_arg__", str(annotation)))
            named.append(Parameter(name, kind, False, True))
        return named, False
    if like is None:
        return named, True
    known = {each.name for each in named}
    others = [each for each in _parameters(like)[0] if each.name not in known]
    return [*named, *(replace(each, is_required=False, is_keyword=True) for each in others)], False


def _returned(function: Callable[..., Any]) -> str:
    """Return the annotation of a function's result."""
    found = inspect.signature(function).return_annotation
    return "" if found is inspect.Signature.empty else str(found)


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
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Further verbs: functions of the object."""
    of_kafka: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Further verbs: functions of the `Kafka`, such as the method that makes these objects."""
    like: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Method with `**given` -> the function whose parameters it takes there."""
    begin: Callable[[Any], object] | None = None
    """Called with a new object that the door keeps."""

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The parameters of `reach`."""
        if self.reach is None:
            return [Parameter("id", ParameterType("string"), True, False)]
        return _parameters(self.reach)[0]

    def verbs(self) -> Iterator[Verb]:
        """Yield a verb for each offered name."""
        for word, function in self.of_kafka.items():
            yield Verb.of_function(self, word, function, is_of_kafka=True)
        if self.reach is None:
            if "list" not in self.of_kafka:
                text = "Return the objects of this kind that the door keeps."
                yield Verb(self, "list", False, text, is_of_kafka=True, of_door=LIST)
            text = "Let the door keep the object no more. Nothing else happens to it."
            yield Verb(self, "forget", False, text, returns="None", of_door=FORGET)
        for name in self.offered.split():
            yield Verb.of(self, name)
        for word, function in self.functions.items():
            yield Verb.of_function(self, word, function)

    def inner(self) -> list[str]:
        """Return the public names of the class that the door does not offer."""
        offered = {each.lstrip(".") for each in self.offered.split()}
        return [name for name in dir(self.of) if name[0] != "_" and name not in offered]

    def object(self, kafka: Any, arguments: Mapping[str, Any], kept: KeptObjects) -> Any:
        """Return the object that the arguments choose."""
        if self.reach is None:
            try:
                found = kept(arguments["id"])
            except WrongValue as error:
                raise WrongCall(f"id: {error}") from None
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
    returns: str = ""
    """The annotation of the result; empty if it has none."""
    function: Callable[..., Any] | None = None
    """The function to call in place of a method."""
    is_of_kafka: bool = False
    """Whether it needs no object of the noun."""
    of_door: str = ""
    """LIST or FORGET, which are about the kept objects of the noun."""

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
        if isinstance(found, property | cached_property):
            getter: Any = found.fget if isinstance(found, property) else found.func
            return cls(noun, name, True, text, returns=_returned(getter))
        if isinstance(found, MemberDescriptorType):
            return cls(noun, name, True, f"The attribute `{name}`.")
        own, is_open = _parameters(found, noun.like.get(name))
        return cls(noun, name, False, text, own, is_open, _returned(found))

    @classmethod
    def of_function(
        cls, noun: Noun, word: str, function: Callable[..., Any], *, is_of_kafka: bool = False
    ) -> Verb:
        """Read a verb from a function of the object, or of the `Kafka`."""
        own, is_open = _parameters(function, noun.like.get(function.__name__))
        return cls(
            noun,
            word,
            False,
            inspect.getdoc(function) or "",
            own,
            is_open,
            _returned(function),
            function,
            is_of_kafka,
        )

    @property
    def name(self) -> str:
        """The words of the call, such as "broker disk fail"."""
        word = "" if self.attribute == "__call__" else self.attribute
        return f"{self.noun.name} {word}".strip()

    @property
    def path(self) -> str:
        """The path of the call, such as "/v1/broker/disk/fail"."""
        return "/v1/" + self.name.replace(" ", "/")

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, the noun's first."""
        return self.own if self.is_of_kafka else [*self.noun.parameters, *self.own]

    def call(self, kafka: Any, given: Mapping[str, Any], kept: KeptObjects) -> Any:
        """Make the call with arguments of JSON.

        Raises:
            WrongCall: an argument is unknown, missing, or of another type.
        """
        values = self._values(given, kept)
        if self.of_door == LIST:
            return kept.of(self.noun.of)
        if self.of_door == FORGET:
            self.noun.object(kafka, values, kept)
            return kept.forget(values["id"])
        names = set() if self.is_of_kafka else {each.name for each in self.noun.parameters}
        found = self._callable(
            kafka, {name: value for name, value in values.items() if name in names}, kept
        )
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

    def _callable(self, kafka: Any, chosen: Mapping[str, Any], kept: KeptObjects) -> Any:
        """Return the method or the value."""
        if self.function is None:
            return getattr(self.noun.object(kafka, chosen, kept), self.attribute)
        owner = kafka if self.is_of_kafka else self.noun.object(kafka, chosen, kept)
        return partial(self.function, owner)

    def _values(self, given: Mapping[str, Any], kept: KeptObjects) -> dict[str, Any]:
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
            "free": self.is_of_kafka,
            "returns": self.returns,
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
            self._refuse_inner(name)
            near = get_close_matches(name, self.verbs, 3)
            raise UnknownVerb(f"there is no verb {name!r}", near)
        return found

    def _refuse_inner(self, name: str) -> None:
        """Raise UnknownVerb if only the process of the cluster has the call."""
        owner, _, attribute = name.rpartition(" ")
        if owner in self.nouns and attribute in self.nouns[owner].inner():
            raise UnknownVerb(f"{name}: {INNER}")

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
                    "inner": each.inner(),
                }
                for each in self.nouns.values()
            ],
            "verbs": [each.described() for each in self.verbs.values()],
        }
