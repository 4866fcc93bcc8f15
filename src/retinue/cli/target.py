"""What a target on the command line names: an agent of the user's, or a model.

`provider:model` and `local` are models, by the library's own words for them. Anything else is
`module:agent`, imported with the current folder on the path; `module:factory` is called without
arguments and returns an agent.
"""

import importlib
import inspect
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from retinue.agent import Agent
from retinue.chains import hooks_of
from retinue.errors import ConfigError, MissingExtraError, RetinueError, UnknownModelError
from retinue.models.gateways import ALIASES, GATEWAYS
from retinue.models.resolve import ANTHROPIC, LOCAL, RESPONSES, resolve

PROVIDERS: Final = frozenset({*GATEWAYS, *ALIASES, *RESPONSES, ANTHROPIC, LOCAL})


def agent_of(target: str | None) -> Agent:
    """The agent to talk to; without a target it is a bare one on the embedded model.

    Raises:
        ConfigError: the target names nothing, or nothing that is an agent.
    """
    if target is None:
        return _default()
    target = target.strip()
    head, _, name = target.partition(":")
    if head in PROVIDERS:
        return Agent(target)
    _see_current_folder()
    there = _is_module(head)
    if not name:
        if there:
            raise ConfigError(f"{target!r} is a module; say which agent in it: '{head}:name'.")
        return Agent(target)
    if not there:
        raise _no_such_target(target, head, name)
    return _agent_in(target, _imported(head), name)


def agents_of(targets: Sequence[str | None]) -> dict[str, Agent]:
    """The agents to serve, by their names.

    Raises:
        ConfigError: a target names no agent, or two agents have one name.
    """
    agents: dict[str, Agent] = {}
    for target in targets:
        agent = agent_of(target)
        if agent.name in agents:
            raise ConfigError(f"Two agents are called {agent.name!r}; give one another name=....")
        agents[agent.name] = agent
    return agents


def onion_of(target: str) -> Agent | tuple[object, ...]:
    """The agent, or the advisors alone, that a `module:name` names; a function gives one of them.

    Raises:
        ConfigError: the target names nothing, or neither.
    """
    head, _, name = target.strip().partition(":")
    _see_current_folder()
    if not name or not _is_module(head):
        raise ConfigError(
            f"{target!r} names no agent and no advisors; give module:agent, or module:name of a"
            " list of advisors."
        )
    found = _object_in(_imported(head), name)
    if not isinstance(found, Agent) and not hooks_of(found) and callable(found):
        found = _called(target, found)
    if isinstance(found, Agent):
        return found
    if isinstance(found, list | tuple):
        return tuple(cast("Sequence[object]", found))
    if hooks_of(found):
        return (found,)
    raise ConfigError(f"{target!r} is {_kind(found)}; name an Agent, an advisor or a list of them.")


def _default() -> Agent:
    try:
        return Agent(LOCAL)
    except MissingExtraError as error:
        raise MissingExtraError(
            "Say what to talk to: a model such as openai:gpt-5-mini, or an agent of yours as"
            f" module:agent. Without that it would be the embedded model. {error}"
        ) from error


def _see_current_folder() -> None:
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)


def _is_module(name: str) -> bool:
    try:
        return bool(name) and not name.startswith(".") and find_spec(name) is not None
    except ModuleNotFoundError:
        return False
    except (ImportError, ValueError, AttributeError):
        return name in sys.modules


def _no_such_target(target: str, head: str, name: str) -> UnknownModelError:
    if head.endswith(".py"):
        module = head.removesuffix(".py").replace("/", ".").lstrip(".")
        return UnknownModelError(f"{head!r} is a file; name the module: '{module}:{name}'.")
    try:
        resolve(target)
        advice = ""
    except UnknownModelError as error:
        advice = str(error)
    return UnknownModelError(
        f"{target!r} is neither an agent, since there is no module {head!r} in this folder or"
        f" installed, nor a model. {advice}".rstrip()
    )


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except RetinueError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"The module {name!r} cannot be imported: {type(error).__name__}: {error}"
            " (--debug shows where)."
        ) from error


def _object_in(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            agents = [key for key, value in vars(module).items() if isinstance(value, Agent)]
            there = f"its agents are {', '.join(agents)}" if agents else "it holds no agent"
            raise ConfigError(f"The module {module.__name__!r} has no {name!r}; {there}.")
        found = getattr(found, part)
    return found


def _agent_in(target: str, module: ModuleType, name: str) -> Agent:
    found = _object_in(module, name)
    if isinstance(found, Agent):
        return found
    if not callable(found):
        raise ConfigError(
            f"{target!r} is {_kind(found)}; name an Agent, or a function that returns one."
        )
    made = _called(target, found)
    if isinstance(made, Agent):
        return made
    if inspect.iscoroutine(made):
        made.close()
        raise ConfigError(f"{target!r} is async; name a plain function that returns an Agent.")
    name = "None" if made is None else type(made).__name__
    raise ConfigError(f"{target!r} returned {name}; it must return an Agent.")


def _called(target: str, factory: Any) -> Any:
    try:
        inspect.signature(factory).bind()
    except (TypeError, ValueError):
        raise ConfigError(
            f"{target!r} cannot be called without arguments; name an Agent, or a function without"
            " arguments that returns one."
        ) from None
    try:
        return factory()
    except RetinueError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{target!r} made no agent: {type(error).__name__}: {error} (--debug shows where)."
        ) from error


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
