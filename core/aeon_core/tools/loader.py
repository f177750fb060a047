"""A user's own tools, named on the command line as `module:attribute` (contract: `--tools SPEC`)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import inspect
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from aeon_core.errors import AeonError, UsageError
from aeon_core.json_safe import clean_text
from aeon_core.paths import real_path
from aeon_core.redaction import redact_text
from aeon_core.tools import TOOL_SETS
from aeon_core.tools.imports import ProjectFinder, module_files
from aeon_core.tools.registry import ToolRegistry

logger: logging.Logger = logging.getLogger("aeon")

GROUP = "aeon.tools"
"""The entry points with which an installed package offers tools."""
_MAX_REASON = 200
_LOADING = threading.RLock()
"""Loading changes Python's module path and redirects prints for the whole process, and runs may load concurrently."""


def load_tools(
    spec: str, registry: ToolRegistry, project_root: Path, verified: Mapping[str, str] | None = None
) -> None:
    """Register what `module:attribute` names: a Tool or its class, a function, a list of these, or a ToolRegistry.

    A module of the project is imported with the project root first on the path, and with `verified` only if each of
    its files has the given SHA-256; other modules are never looked up in the project. What it prints
    goes to stderr. Raises UsageError, one line that names the spec, for anything that goes wrong.
    """
    module_name, attribute = spec_parts(spec)
    with _LOADING, _importable(module_name, project_root, verified or {}), contextlib.redirect_stdout(sys.stderr):
        module = _module(spec, module_name, project_root)
        _register(spec, _attribute(spec, module, attribute), registry)


def load_installed_tools(registry: ToolRegistry) -> None:
    """Register what installed packages offer under the entry points `aeon.tools`, each a `module:attribute`.

    A package whose tools cannot be loaded is skipped with a warning in the log, since nobody requested it.
    """
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        spec = f"{point.name} = {point.value}"
        with _LOADING, contextlib.redirect_stdout(sys.stderr):
            try:
                _register(spec, point.load(), registry)
            except UsageError as error:
                logger.warning("%s", error.message)
            except (Exception, SystemExit) as error:
                logger.warning("tools %r: loading them raised %s", spec, _reason(error))


def _register(spec: str, value: Any, registry: ToolRegistry) -> None:
    tools = list(value) if isinstance(value, (list, tuple, ToolRegistry)) else [value]
    if not tools:
        raise _error(spec, "it has no tools")
    for tool in tools:
        try:
            registry.register(tool() if inspect.isclass(tool) else tool)
        except AeonError as error:
            raise _error(spec, error.message) from None
        except (Exception, SystemExit) as error:
            raise _error(spec, f"making the tool raised {_reason(error)}") from None


def spec_parts(spec: str) -> tuple[str, str]:
    """Return module and attribute of a `module:attribute`. Raises UsageError if a spec has another form."""
    module_name, colon, attribute = spec.partition(":")
    if not colon or not all(part.isidentifier() for part in [*module_name.split("."), *attribute.split(".")]):
        raise _error(spec, f"expected {', '.join(TOOL_SETS)} or module:attribute, such as my_tools:search")
    return module_name, attribute


@contextlib.contextmanager
def _importable(module_name: str, project_root: Path, verified: Mapping[str, str]) -> Iterator[None]:
    """Let the project provide the module if it has it: otherwise its files could pose as what the module imports."""
    root = real_path(project_root)
    if not module_files([module_name], root):
        yield
        return
    entry, finder = str(root), ProjectFinder(root, verified)
    if verified:
        finder.install()
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    finder.is_open = True
    try:
        yield
    finally:
        finder.is_open = False
        with contextlib.suppress(ValueError):
            sys.path.remove(entry)


def _module(spec: str, name: str, project_root: Path) -> ModuleType:
    _refuse_another_of_that_name(spec, name.partition(".")[0], project_root)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            reason = f"no module {error.name!r} in {str(project_root)!r} or among the installed packages"
            raise _error(spec, reason) from None
        raise _error(spec, f"importing {name!r} raised {_reason(error)}") from None
    except (Exception, SystemExit) as error:
        raise _error(spec, f"importing {name!r} raised {_reason(error)}") from None


def _refuse_another_of_that_name(spec: str, name: str, project_root: Path) -> None:
    """Refuse a module of the project that Python would pass over for one already imported under the same name."""
    loaded = getattr(sys.modules.get(name), "__file__", None)
    found = importlib.machinery.PathFinder.find_spec(name, [str(real_path(project_root))])
    if name not in sys.modules or found is None or found.origin is None:
        return
    if loaded is None or real_path(loaded) != real_path(found.origin):
        raise _error(spec, f"another module {name!r} is already imported; rename {found.origin!r}")


def _attribute(spec: str, module: ModuleType, attribute: str) -> Any:
    try:
        return attrgetter(attribute)(module)
    except AttributeError:
        raise _error(spec, f"module {module.__name__!r} has no {attribute!r}") from None
    except (Exception, SystemExit) as error:
        raise _error(spec, f"reading {attribute!r} raised {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    text = redact_text(clean_text(" ".join(str(error).split())))
    return f"{type(error).__name__}: {text[:_MAX_REASON]}" if text else type(error).__name__


def _error(spec: str, reason: str) -> UsageError:
    return UsageError(f"tools {spec[:_MAX_REASON]!r}: {reason}", spec=spec)
