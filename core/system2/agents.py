"""The agents of a project and the shipped ones: their files, prompts and tools (REQ-010…016, 029, 081, 103, 150).

A definition is read from its file each time it is requested; its prompt is adapted to this workflow, and `allow` maps
the tools that it names to ours. `--init` copies the shipped agents into a project.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml

from aeon_core.errors import ToolError, UsageError
from aeon_core.paths import real_path
from aeon_core.regular_file import read_text, replace_file
from aeon_core.suggest import close, nearest, shown
from aeon_core.tools.base import Tool
from aeon_core.tools.sandbox import Sandbox
from aeon_core.yaml_file import Bounds, YamlError, compose_yaml
from system2.constants import COMPLETION_TOOL, DELEGATION_MAP

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


def split_frontmatter(text: str) -> tuple[str, str]:
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


def parse_frontmatter(block: str) -> dict[str, Any]:
    """Return the fields that are read, None for one that is absent or null.

    Raises FrontmatterError if the block is not YAML or a field has the wrong type.
    """
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
    fields: dict[str, Any] = {}
    for key in _FIELDS:
        texts = _texts(key, values)
        fields[key] = "".join(texts or ()).strip() or None
        if texts is not None and key in _LISTS:
            # YAML sees two items in `[Agent(a, b)]`: they are joined, then split outside parentheses.
            fields[key] = tool_names(",".join(texts))
    return fields


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


TOOL_NAMES = ("Read", "Write", "Edit", "Grep", "Glob", "Bash")
"""The tools that an agent can have (REQ-020)."""

_OUR_NAMES = {name.lower(): name for name in TOOL_NAMES}
_OTHER_NAMES = {"multiedit": "Edit", "ls": "Glob"}
_EVERYTHING = frozenset({"*", "all"})
_DELEGATING = frozenset({"agent", "task", "delegate", "new_task"})
_COMPLETING = frozenset({COMPLETION_TOOL, "attempt_completion"})


@dataclass(frozen=True)
class Allowance:
    """Which tools an agent may call, and with what."""

    names: tuple[str, ...]
    """A subset of TOOL_NAMES, in that order."""
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each tool that is only partly allowed, the globs, one of which its first argument must match."""
    warnings: tuple[str, ...] = ()
    """One line for each named tool that is not available."""

    def refusal(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Return why the agent may not make this call, or None if it may; every call is checked (REQ-029)."""
        if tool.name not in self.names:
            return f"this agent may not call {tool.name!r}; it has {', '.join(self.names) or 'no tools'}"
        globs = self.limits.get(tool.name)
        if globs is None:
            return None
        argument = next(iter(tool.input_schema.get("properties", {})), "")
        parts = tool.parts(dict(arguments))
        if parts and all(_fits(part.get(argument), globs) for part in parts):
            return None
        return f"this agent may call {tool.name!r} only with {argument} like {', '.join(map(repr, globs))}"


def allow(tools: Iterable[str]) -> Allowance:
    """Return what an agent's `tools` allow; a name listed both with and without parentheses is allowed in full.

    Case is ignored. `Agent(a, b)` and the like allow nothing: agents cannot start other agents (REQ-N05).
    """
    whole: set[str] = set()
    limits: dict[str, list[str]] = {}
    warnings: list[str] = []
    for tool in tools:
        base, inside = base_name(tool), tool.partition("(")[2].strip().removesuffix(")").strip()
        name = _OUR_NAMES.get(base) or _OTHER_NAMES.get(base)
        if base in _EVERYTHING:
            whole.update(TOOL_NAMES)
        elif name is not None and inside not in ("", "*"):
            limits.setdefault(name, []).extend(_globs(inside))
        elif name is not None:
            whole.add(name)
        elif base not in _COMPLETING:
            warnings.append(_unknown(tool, base))
    names = tuple(name for name in TOOL_NAMES if name in whole or name in limits)
    limited = {name: tuple(dict.fromkeys(limits[name])) for name in names if name not in whole}
    return Allowance(names, limited, tuple(warnings))


def base_name(tool: str) -> str:
    """Return a tool's name in lower case, without what follows in parentheses."""
    return tool.split("(", 1)[0].strip().lower()


def _globs(inside: str) -> list[str]:
    """Return the globs for the text in parentheses; `git diff:*` matches that command alone or with more words."""
    if inside.endswith(":*"):
        return [inside[:-2].rstrip(), f"{inside[:-2].rstrip()} *"]
    return [inside]


def _fits(value: Any, globs: tuple[str, ...]) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return any(fnmatchcase(text, glob) for glob in globs)


def _unknown(tool: str, base: str) -> str:
    if base in _DELEGATING:
        return f"the tool {shown(tool)} is not available: agents cannot start other agents, only the orchestrator can"
    near = close(base, _OUR_NAMES, 0.6)
    hint = f"did you mean {_OUR_NAMES[near]!r}?" if near else f"the known ones are {', '.join(TOOL_NAMES)}"
    return f"unknown tool {shown(tool)}, ignored; {hint}"


COMPLETION_INSTRUCTION = """
## Completion Protocol

When you have finished your task, call the `signal_completion` tool with:
- status: "success", "failure", or "blockers"
- files_changed: list of file paths you created or modified
- summary: brief summary of what you did
- blockers: (optional) list of blocking issues if status is "blockers"
"""

_SPACE = r"[^\S\n]"
_GAP = rf"(?:{_SPACE}+|{_SPACE}*\n{_SPACE}*(?:>{_SPACE}*)*)"
"""The space between two words: at most one line break, even within a block quote."""
_MARKS = r"[`*_\"']{0,3}"


def apply_transforms(raw_prompt: str) -> str:
    """Return the system prompt for a raw one: with the rules applied in order and the completion protocol at its end.

    Line endings become newlines. Applying it again changes nothing.
    """
    text = re.sub(r"\r\n?", "\n", raw_prompt)
    for rule in TRANSFORM_RULES:
        text = rule(text)
    if COMPLETION_INSTRUCTION.strip() in text:
        return text
    return f"{text.rstrip()}\n{COMPLETION_INSTRUCTION}".lstrip("\n")


_HOOK_SCRIPT = re.compile(r"scripts[/\\]claude-hooks(?![\w-])", re.IGNORECASE)
_ITEM = rf"(?:[-*+]|\d{{1,3}}[.)]){_SPACE}"
_PART = re.compile(
    rf"^(?P<indent>{_SPACE}*){_ITEM}.*(?:\n(?P=indent){_SPACE}+(?!{_ITEM})\S.*)*|^.*$",
    re.MULTILINE,
)
"""A list item with its continuation lines, or any other line."""


def _without_hook_scripts(text: str) -> str:
    """TR-08: drop each line that names a hook script; in a list drop the whole item, since the rest makes no sense."""
    if _HOOK_SCRIPT.search(text) is None:
        return text
    parts = (part.group() for part in _PART.finditer(text))
    return "\n".join(part for part in parts if not _HOOK_SCRIPT.search(part))


_LOADING = re.compile(
    rf"(?P<file>CLAUDE\.md{_MARKS}){_GAP}?\(\s*(?:(?:which|that)\s+is\s+)?auto(?:matically)?[\s-]*loaded\s+by\s+"
    r"(?:the\s+)?Claude\s+Code(?:\s+CLI)?(?:\s+(?:at|on|during)\s+(?:session\s+)?start-?up)?\s*\)",
    re.IGNORECASE,
)
"""Who loads CLAUDE.md: to an agent it is the project's instructions."""
_COMPLETION = re.compile(r"attempt\\?_\s*completion", re.IGNORECASE)
"""The tool that signals completion elsewhere (REQ-014)."""
_PRODUCT = re.compile(
    rf"(?:\b(?P<before>a|an|the|your|our|my|this|that|each|every|any|its|their|several|many|some|other|ordinary|existing|new)(?P<gap>{_GAP}))?"
    rf"(?<![\w-])Claude{_GAP}Code(?:{_GAP}CLI)?(?!\w)(?P<joined>(?=-\w))?",
    re.IGNORECASE,
)
_NOT_THE_PRODUCT = re.compile(
    rf"Claude{_GAP}code(?={_GAP}(?:examples?|snippets?|samples?|blocks?|questions?|listings?|fragments?)\b)"
)


def _with_orchestrator(text: str) -> str:
    """TR-04: call Claude Code the orchestrator, with an article that fits the sentence."""

    def renamed(match: re.Match[str]) -> str:
        if _NOT_THE_PRODUCT.search(match.string, match.start(), min(match.end() + 20, len(match.string))):
            return match.group()
        before, gap = match["before"], match["gap"]
        if before is None:
            return "orchestrator" if match["joined"] is not None else "the orchestrator"
        article = f"{before}n" if before.lower() == "a" else before
        return f"{article}{gap}orchestrator"

    return _PRODUCT.sub(renamed, text)


_OBJECT = (
    "such|the|these|those|this|that|any|all|each|every|required|necessary|needed|remaining|failing|code|bug|test"
    "|fix|fixes|work|changes?|issues?|failures?|findings?|blockers?|tasks?|defects?|problems?|it|them|everything|back"
)
_DELEGATION = re.compile(
    rf"(?<![\w-])(?P<verb>delegat(?:e|es|ing)|boomerang(?:s|ing)?)(?:{_GAP}(?:{_OBJECT})){{0,6}}{_GAP}to{_GAP}"
    rf"(?:the{_GAP})?{_MARKS}(?P<agent>{'|'.join(DELEGATION_MAP)}){_MARKS}(?:{_GAP}(?:sub-?)?agent)?"
    rf"(?![\w(-]|\.\w|['’]s\b|{_GAP}(?:threads?|pools?|services?|objects?|instances?)\b)",
    re.IGNORECASE,
)
_LEFT_AS_IT_IS = re.compile(
    rf"(?:\b(?:not|never|cannot|without|nor|instead{_GAP}of|rather{_GAP}than)|n['’]t"
    rf"|\borchestrator(?:{_GAP}(?:can|may|might|must|should|shall|will|would|then|to|itself|alone|only|who|that|which))*)"
    rf"{_GAP}(?:try{_GAP}to{_GAP}|attempt{_GAP}to{_GAP}|directly{_GAP}|ever{_GAP})?\Z",
    re.IGNORECASE,
)


def _with_reports(text: str) -> str:
    """TR-03: turn delegation into a report, since agents cannot start agents (REQ-N05); leave prohibitions alone."""

    def reported(match: re.Match[str]) -> str:
        if _LEFT_AS_IT_IS.search(match.string[max(0, match.start() - 80) : match.start()]):
            return match.group()
        verb = match["verb"]
        ending = next((ending for ending in ("ing", "s") if verb.lower().endswith(ending)), "")
        start = "Report" if verb[0].isupper() else "report"
        return f"{start}{ending} to orchestrator for re-delegation to {match['agent'].lower()}"

    return _DELEGATION.sub(reported, text)


TRANSFORM_RULES: tuple[Callable[[str], str], ...] = (
    _without_hook_scripts,
    partial(_LOADING.sub, r"\g<file> (project instructions)"),
    partial(_COMPLETION.sub, COMPLETION_TOOL),
    _with_orchestrator,
    _with_reports,
)
"""TR-08, TR-07, TR-02, TR-04, TR-03: in this order no rule removes words that a later one looks for."""


AGENTS_FOLDER = Path(".claude") / "agents"
SHIPPED = Path(__file__).parent / "shipped"
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
        self._as_found: dict[Path, AgentDefinition] = {}

    def names(self) -> list[str]:
        return sorted(self._places)

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
        folder = self._root / AGENTS_FOLDER
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".md")
        except FileNotFoundError:
            return
        except OSError as error:
            self._warn(f"cannot list the agents in {str(folder)!r}: {error.strerror}")
            return
        for path in paths:
            try:
                if not real_path(path).is_relative_to(real_path(self._root)):
                    why = "is a link out of the project; copy it into the project"
                    raise AgentParseError(f"the agent file {str(path)!r} {why}")
                yield parse_agent(path)
            except AgentParseError as error:
                self._warn(f"{error.message} (skipped)")

    def was_changed(self, agent: AgentDefinition) -> bool:
        """Return whether an agent of the project has changed since its files were first searched."""
        return self._as_found.get(agent.source_path, agent) != agent

    def _path(self, name: str) -> Path:
        if name not in self._places:
            raise UsageError(f"no agent {name!r}{nearest(name, self.names())}")
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, Path]:
        """The file of each agent; the folders are searched once."""
        return {path.stem: path for path in SHIPPED.glob("*.md")} | self._own_places()

    def _own_places(self) -> dict[str, Path]:
        places: dict[str, Path] = {}
        for agent in self.own():
            name, path = agent.name, agent.source_path
            if not self._may_use(agent):
                self._warn(f"the agent file {str(path)!r} can run commands and is not trusted (skipped)")
                continue
            self._as_found[path] = agent
            meant = {name.lower(), path.stem.lower()}.intersection(DELEGATION_MAP)
            if name not in DELEGATION_MAP and meant:
                why = f"names its agent {name!r}, which has no part in a workflow; did you mean {meant.pop()!r}?"
                self._warn(f"the agent file {str(path)!r} {why}")
            if name not in places:
                places[name] = path
                continue
            chosen, other = (path, places[name]) if path.stem == name else (places[name], path)
            places[name] = chosen
            self._warn(f"the agent {name!r} is defined twice: using {str(chosen)!r}, skipping {str(other)!r}")
        return places


def parse_agent(agent_path: Path) -> AgentDefinition:
    """Return the agent that a file defines (REQ-010 to REQ-016, REQ-081). Raises AgentParseError."""
    where = f"the agent file {str(agent_path)!r}"
    try:
        block, body = split_frontmatter(read_text(agent_path, where, MAX_BYTES))
        fields = parse_frontmatter(block)
    except UsageError as error:
        raise AgentParseError(error.message) from None
    except FrontmatterError as error:
        raise AgentParseError(f"{where} {error}") from None
    name, description, tools, denied = (fields[key] for key in _FIELDS)
    if missing := ", ".join(repr(key) for key in ("name", "description", "tools") if fields[key] is None):
        raise AgentParseError(f"{where} has no {missing} in its frontmatter; add it between the `---` lines")
    if len(name) > MAX_NAME or not name.isprintable():
        raise AgentParseError(
            f"{where} has a 'name' that is not one printable line of at most {MAX_NAME} characters; change it"
        )
    if not body.strip():
        raise AgentParseError(f"{where} has no prompt; write it below the frontmatter")
    denied = {base_name(tool) for tool in denied or ()}
    tools = [tool for tool in tools if base_name(tool) not in denied]
    return AgentDefinition(name, description, tools, apply_transforms(body), body, agent_path)


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
