"""The worlds by name. A world registers itself beside its own code; here is one line for each folder.

Light: nothing is loaded before a world is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from planvec.errors import InputError

if TYPE_CHECKING:
    from planvec.worlds.protocol import World

FOLDERS = ("crafting", "tabletop", "doom")  # each has its REGISTRATIONS in its __init__.py
USUAL = FOLDERS[0]  # the world where none is named


@dataclass(frozen=True)
class Registration:
    """What there is to know of a world before it is loaded."""

    name: str
    description: str
    factory: str  # "module:attribute", which gives the world when it is called …
    options: Mapping[str, Any] = field(default_factory=dict)  # … with these
    variant: bool = False  # of another world: listed after those that stand for themselves
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # gymnasium's, by their names
    benchmark: str | None = None  # "module:function", which measures how fast it is


_registered: dict[str, Registration] = {}


def register(registration: Registration) -> None:
    """Make a world known by its name."""
    known = registrations().get(registration.name)
    if known not in (None, registration):
        raise InputError(f"there is a world called '{registration.name}' already; choose another name")
    _registered[registration.name] = registration


def registrations() -> dict[str, Registration]:
    """All worlds that are known, by name: ours, then those that were registered since."""
    return {one.name: one for one in _own()} | _registered


@cache
def _own() -> tuple[Registration, ...]:
    every = [one for folder in FOLDERS for one in import_module(f"planvec.worlds.{folder}").REGISTRATIONS]
    return tuple(sorted(every, key=lambda one: one.variant))


@cache
def make(name: str) -> "World":
    """A world by name; or by where it is, as in my_package.kitchen:World."""
    check_name(name)
    if ":" in name:
        return _imported(name, name)
    registration = registrations()[name]
    return _imported(registration.factory, name, **registration.options)


def check_name(name: str) -> None:
    """Complain about a name that no world has."""
    if ":" not in name and name not in registrations():
        raise InputError(f"no world is called '{name}'; there is {', '.join(registrations())}")


def _imported(path: str, name: str, **options: Any) -> Any:
    """What an attribute of a module is, or gives when it is called."""
    found = attribute(path, f"the world '{name}'")
    return found(**options) if callable(found) else found


def attribute(path: str, what: str) -> Any:
    """The attribute of a module that a path like "module:attribute" names."""
    module_name, _, name = path.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise InputError(f"{what} cannot be found: there is no module '{error.name}'") from None
    except ValueError as error:
        if isinstance(error, InputError):  # an extra that is not installed
            raise
        raise InputError(f"{what} cannot be found: '{module_name}' is no name of a module") from None
    if not hasattr(module, name):
        raise InputError(f"{what} cannot be found: '{module_name}' has no '{name}'")
    return getattr(module, name)


def register_environments() -> None:
    """Make the worlds' environments known to gymnasium."""
    import gymnasium  # which worker processes can do without

    for registration in registrations().values():
        for name, entry_points in registration.environments.items():
            gymnasium.register(name, **entry_points)
