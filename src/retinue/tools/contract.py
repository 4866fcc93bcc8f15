"""Which kind of contract a tool gets.

Plain types, dataclasses, TypedDicts and enums are read by msgspec; pydantic types, and what msgspec
does not know, by pydantic; a schema that was given as data by jsonschema_rs. The last two are
imported when a tool first needs them.
"""

import dataclasses
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from retinue.errors import ConfigError
from retinue.tools.schema import Contract, PlainContract
from retinue.tools.signature import Parameter, Signature


def contract(tool: str, signature: Signature, given: Mapping[str, Any] | None) -> Contract:
    """The contract of a function, or of a schema that was given for it.

    Raises:
        ConfigError: a type has no JSON form, or function and schema do not go together.
    """
    if given is not None:
        from retinue.tools.schema_given import GivenContract

        return GivenContract(tool, signature, given)
    if signature.open:
        raise ConfigError(
            f"The tool {tool!r} takes **kwargs, and a model must be told every name; name its"
            " parameters, or give their JSON Schema with parameters=."
        )
    if any(is_foreign(p.annotation) for p in signature.parameters):
        from retinue.tools.schema_pydantic import PydanticContract

        return PydanticContract(tool, signature.parameters)
    try:
        return PlainContract(tool, signature.parameters)
    except (TypeError, NameError) as error:
        return _second_opinion(tool, signature.parameters, error)


def _second_opinion(tool: str, parameters: Sequence[Parameter], first: Exception) -> Contract:
    """Pydantic knows more types; where it is not installed, the first refusal stands."""
    try:
        from retinue.tools.schema_pydantic import PydanticContract
    except ImportError:
        culprit = next((p for p in parameters if not _is_plain(p)), parameters[0])
        raise ConfigError(
            f"The tool {tool!r} annotates {culprit.name!r} with a type that has no JSON form"
            f" ({culprit.annotation!r}); use another, or install pydantic, which knows more types."
        ) from first
    return PydanticContract(tool, parameters)


def _is_plain(parameter: Parameter) -> bool:
    try:
        msgspec.json.schema_components((parameter.annotation,))
    except (TypeError, NameError):
        return False
    return True


_FOREIGN: Final = ("pydantic", "pydantic_core", "annotated_types")


def is_foreign(annotation: Any, outer: tuple[Any, ...] = ()) -> bool:
    """Whether an annotation holds a pydantic type or constraint, however deep.

    Args:
        annotation: what is looked into.
        outer: the classes it stands in, which may hold themselves.
    """
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        if annotation.__module__ == "builtins" or annotation in outer:
            return False
        if _is_theirs(annotation) or hasattr(annotation, "__pydantic_core_schema__"):
            return True
        return any(is_foreign(one, (*outer, annotation)) for one in _fields(annotation))
    if _is_theirs(cast("type[Any]", type(annotation))):
        return True
    inside = (
        getattr(annotation, "__origin__", object),
        *getattr(annotation, "__args__", ()),
        *getattr(annotation, "__metadata__", ()),
    )
    return any(is_foreign(one, outer) for one in inside)


def _fields(kind: type[Any]) -> Iterable[Any]:
    """The annotations of the fields, for classes that both msgspec and pydantic read."""
    is_named_tuple = tuple in kind.__mro__ and hasattr(kind, "_fields")
    is_typed_dict = hasattr(kind, "__required_keys__")  # that of typing_extensions too
    if not (is_named_tuple or is_typed_dict or dataclasses.is_dataclass(kind)):
        return ()
    try:
        return typing.get_type_hints(kind, include_extras=True).values()
    except Exception:  # names that cannot be resolved, which msgspec then refuses by name
        return ()


def _is_theirs(kind: type[Any]) -> bool:
    return kind.__module__.partition(".")[0] in _FOREIGN
