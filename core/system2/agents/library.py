"""The agents of a project and the shipped ones (REQ-015, REQ-103, REQ-150).

A definition is read from its file each time it is requested; `--init` copies the shipped ones into a project.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from aeon_core.errors import ToolError, UsageError
from aeon_core.regular_file import read_text, replace_file
from aeon_core.suggest import nearest
from aeon_core.tools.sandbox import Sandbox
from aeon_core.yaml_file import Bounds, YamlError, compose_yaml
from system2.agents.tools import base_name
from system2.agents.transforms import apply_transforms
from system2.constants import DELEGATION_MAP

MAX_CHARACTERS = 64_000
"""The longest frontmatter accepted."""
_BOUNDS = Bounds(depth=50)

_OPENING = re.compile(r"\s*---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(_CORE + kind for kind in ("str", "int", "float", "bool"))
_LISTS = ("tools", "disallowedTools")
_FIELDS = ("name", "description", *_LISTS)


class FrontmatterError(ValueError):
    """Frontmatter that cannot be used; the message says why, but does not name the file."""


@dataclass(frozen=True)
class Frontmatter:
    """The fields that are read. A field that is absent or null is None."""

    name: str | None = None
    description: str | None = None
    tools: list[str] | None = None
    denied_tools: list[str] | None = None


def split(text: str) -> tuple[str, str]:
    """Return the YAML and the body of an agent's text. A `---` further down belongs to the body.

    Raises FrontmatterError if the text does not begin with frontmatter, or if that is too long or not closed.
    """
    opening = _OPENING.match(text)
    if opening is None:
        raise FrontmatterError(
            "does not start with frontmatter; put `name`, `description` and `tools` between `---` lines"
        )
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise FrontmatterError("has frontmatter without an end; add a line `---` after it")
    if closing.start() - opening.end() > MAX_CHARACTERS:
        raise FrontmatterError(f"has frontmatter of more than {MAX_CHARACTERS:,} characters; shorten it")
    return text[opening.end() : closing.start()], text[closing.end() :]


def parse(block: str) -> Frontmatter:
    """Return the fields of frontmatter. Raises FrontmatterError if it is not YAML or a field has the wrong type."""
    try:
        node = compose_yaml(block, _BOUNDS)
    except YamlError as error:
        # The opening `---` is the first line of the file.
        line = f" (line {error.line + 1})" if error.line is not None else ""
        kind = "that is not valid" if error.valid else "that is not valid YAML"
        raise FrontmatterError(f"has frontmatter {kind}{line}: {error}") from None
    if not isinstance(node, yaml.MappingNode):
        raise FrontmatterError("has frontmatter without `key: value` lines; add `name`, `description` and `tools`")
    values: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value not in _FIELDS:
            continue
        if key.value in values:
            raise FrontmatterError(f"has {key.value!r} twice in its frontmatter; keep one of them")
        values[key.value] = value
    name, description = ("".join(_texts(key, values) or ()).strip() or None for key in ("name", "description"))
    # YAML sees two items in `[Agent(a, b)]`: they are joined, then split outside parentheses.
    lists = (_texts(key, values) for key in _LISTS)
    return Frontmatter(name, description, *(None if texts is None else tool_names(",".join(texts)) for texts in lists))


def _texts(key: str, values: Mapping[str, yaml.Node]) -> list[str] | None:
    """Return a field's text, or the texts of one that may be a list; None if it is absent or null."""
    node = values.get(key)
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == f"{_CORE}null"):
        return None
    is_list = key in _LISTS and isinstance(node, yaml.SequenceNode) and node.tag == f"{_CORE}seq"
    nodes = node.value if is_list else [node]
    if all(isinstance(each, yaml.ScalarNode) and each.tag in _TEXT_TAGS for each in nodes):
        return [each.value for each in nodes]
    if key in _LISTS:
        raise FrontmatterError(f"has {key!r} that are not names; write them as `{key}: Read, Grep` or as a list")
    raise FrontmatterError(f"has a {key!r} that is not text; write it as `{key}: some text`")


def tool_names(text: str) -> list[str]:
    """Return the names in a text, which commas or spaces separate; a name keeps what follows it in parentheses."""
    names, name, depth = [], "", 0
    for character in re.sub(r"\s+\(", "(", text.strip().strip("[]")):
        depth += (character == "(") - (character == ")" and depth > 0)
        if depth == 0 and (character == "," or character.isspace()):
            names.append(name)
            name = ""
        else:
            name += character
    stripped = (each.strip().strip("\"'`") for each in [*names, name])
    return list(dict.fromkeys(each for each in stripped if each))


AGENTS_FOLDER = Path(".claude") / "agents"
SHIPPED = Path(__file__).parents[1] / "shipped"
"""The folder of the thirteen shipped agents."""
MAX_BYTES = 512_000
"""The largest agent file accepted; a longer prompt would fill a model's context window."""
MAX_NAME = 100


@dataclass(frozen=True)
class AgentDefinition:
    """An agent, read from one file (REQ-081)."""

    name: str
    description: str
    tools: list[str]
    """As named in the file, without its `disallowedTools`; `allow` maps them to our tools."""
    system_prompt: str
    """After the transforms, with the completion protocol."""
    raw_system_prompt: str
    """The Markdown body of the file, unchanged."""
    source_path: Path


class AgentParseError(UsageError):
    """A file that defines no agent; the message names the file, what is wrong and what to do."""


class AgentLibrary:
    """The agents by name: the project's own, and the shipped ones that it does not redefine.

    Files that define no agent, and agents that `may_use` rejects, are skipped; `warn` gets one line for each, once
    (REQ-095). If two files define the same name, the file with that name wins, else the first in alphabetical order.
    """

    def __init__(
        self,
        project_root: Path,
        warn: Callable[[str], None],
        may_use: Callable[[AgentDefinition], bool] = lambda _: True,
    ) -> None:
        self._root = project_root
        self._warn = warn
        self._may_use = may_use
        self._places: dict[str, Path] | None = None
        self._as_found: dict[Path, int] = {}

    def names(self) -> list[str]:
        """Return the names of all agents, in alphabetical order."""
        return sorted(self._found())

    def is_shipped(self, name: str) -> bool:
        """Return whether the agent is the shipped one, because the project defines none of that name."""
        return self._path(name).parent == SHIPPED

    def get(self, name: str) -> AgentDefinition:
        """Return an agent, read from its file now.

        Raises UsageError if there is none of that name, or if its file is no longer valid or not trusted.
        """
        agent = parse_agent(path := self._path(name))
        if path.parent != SHIPPED and not self._may_use(agent):
            raise UsageError(f"the agent file {str(path)!r} can run commands and is not trusted; see `aeon-tui trust`")
        return agent

    def own(self) -> Iterator[AgentDefinition]:
        """Yield the agents that the project's files define now, including those that may not be used."""
        for path in self._candidates(self._root / AGENTS_FOLDER):
            try:
                yield parse_agent(path)
            except AgentParseError as error:
                self._warn(f"{error.message} (skipped)")

    def was_changed(self, agent: AgentDefinition) -> bool:
        """Return whether an agent of the project has changed since its files were first searched."""
        return self._as_found.get(agent.source_path, _digest(agent)) != _digest(agent)

    def _path(self, name: str) -> Path:
        places = self._found()
        if name not in places:
            raise UsageError(f"no agent {name!r}{nearest(name, tuple(sorted(places)))}")
        return places[name]

    def _found(self) -> dict[str, Path]:
        """Return the file of each agent; the folders are searched once."""
        if self._places is None:
            self._places = {path.stem: path for path in SHIPPED.glob("*.md")} | self._own_places()
        return self._places

    def _own_places(self) -> dict[str, Path]:
        places: dict[str, Path] = {}
        for agent in self.own():
            name, path = agent.name, agent.source_path
            if not self._may_use(agent):
                self._warn(f"the agent file {str(path)!r} can run commands and is not trusted (skipped)")
                continue
            self._as_found[path] = _digest(agent)
            if name not in places:
                places[name] = path
                continue
            chosen, other = (path, places[name]) if path.stem == name else (places[name], path)
            places[name] = chosen
            self._warn(f"the agent {name!r} is defined twice: using {str(chosen)!r}, skipping {str(other)!r}")
        return places

    def _candidates(self, folder: Path) -> list[Path]:
        """Return the Markdown files in the folder, without links that lead out of the project."""
        try:
            root = self._root.resolve()
            paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".md")
        except FileNotFoundError:
            return []
        except (OSError, RuntimeError) as error:
            self._warn(f"cannot list the agents in {str(folder)!r}: {getattr(error, 'strerror', None) or error}")
            return []
        inside = []
        for path in paths:
            with contextlib.suppress(OSError, RuntimeError):
                if not path.resolve().is_relative_to(root):
                    self._warn(
                        f"the agent file {str(path)!r} is a link out of the project (skipped); copy it into the project"
                    )
                    continue
            inside.append(path)
        return inside


def _digest(agent: AgentDefinition) -> int:
    return hash((agent.name, tuple(agent.tools), agent.raw_system_prompt))


def parse_agent(agent_path: Path) -> AgentDefinition:
    """Return the agent that a file defines (REQ-010 to REQ-016, REQ-081). Raises AgentParseError."""
    where = f"the agent file {str(agent_path)!r}"
    try:
        block, body = split(read_text(agent_path, where, MAX_BYTES))
        fields = parse(block)
    except UsageError as error:
        raise AgentParseError(error.message) from None
    except FrontmatterError as error:
        raise AgentParseError(f"{where} {error}") from None
    name, description, tools = _require_fields(fields, body, where)
    return AgentDefinition(name, description, tools, apply_transforms(body), body, agent_path)


def _require_fields(fields: Frontmatter, body: str, where: str) -> tuple[str, str, list[str]]:
    name, description, tools = fields.name, fields.description, fields.tools
    if name is None or description is None or tools is None:
        values = {"name": name, "description": description, "tools": tools}
        missing = ", ".join(repr(key) for key, value in values.items() if value is None)
        raise AgentParseError(f"{where} has no {missing} in its frontmatter; add it between the `---` lines")
    if len(name) > MAX_NAME or not name.isprintable():
        raise AgentParseError(
            f"{where} has a 'name' that is not one printable line of at most {MAX_NAME} characters; change it"
        )
    if not body.strip():
        raise AgentParseError(f"{where} has no prompt; write it below the frontmatter")
    denied = {base_name(tool) for tool in fields.denied_tools or ()}
    return name, description, [tool for tool in tools if base_name(tool) not in denied]


def copy_shipped(project_root: Path, warn: Callable[[str], None]) -> tuple[list[Path], dict[str, str]]:
    """Copy the shipped agents that the project lacks into its `.claude/agents`.

    Returns the new files and, by name, why each other agent was skipped: the project defines it, or has a file of that
    name. `warn` gets a line about each file there that defines no agent. Raises UsageError if the folder is outside the
    project or cannot be written.
    """
    library = AgentLibrary(project_root, warn)
    written: list[Path] = []
    left: dict[str, str] = {}
    target = project_root / AGENTS_FOLDER
    try:
        sandbox = Sandbox(project_root)
        folder = sandbox.root / sandbox.relative(str(AGENTS_FOLDER))
        folder.mkdir(parents=True, exist_ok=True)
        for name in DELEGATION_MAP:
            target = folder / f"{name}.md"
            if not library.is_shipped(name):
                left[name] = f"the project already has it in {library.get(name).source_path.name!r}"
            elif os.path.lexists(target):
                left[name] = f"there is already a file {target.name!r}"
            else:
                replace_file(target, (SHIPPED / target.name).read_bytes(), mode=0o666)
                written.append(target)
    except OSError as error:
        why = f"cannot be written: {error.strerror}; make it writable or choose another project"
        raise UsageError(f"{str(target)!r} {why}") from None
    except ToolError as error:
        raise UsageError(f"cannot copy agents there: {error.message}") from None
    return written, left
