"""The policy for tool calls: rules that allow, ask or deny, by tool and argument; deny over ask over allow.

And the rule that is proposed to a person who always wants to allow calls like the one they are asked about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from aeon_core.errors import ToolError, UsageError
from aeon_core.suggest import close
from aeon_core.tools.base import Answer, CallVerdict, Tool

_FORM = re.compile(r"(?P<tool>[^()\s]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)
_NAMED = re.compile(r"(?P<argument>\w+)=(?P<glob>.*)", re.DOTALL)
_STRICTEST: tuple[Answer, ...] = ("deny", "ask", "allow")


class PolicyRules(BaseModel):
    """Rules as written in a configuration: `TOOL`, `TOOL(GLOB)` or `TOOL(ARGUMENT=GLOB)`.

    TOOL is a name or a glob of names. A GLOB alone is matched with the tool's first argument; `*` matches any text,
    slashes included, `?` for one character, `[…]` for one of a set. A GLOB that ends in ` *`, as `git status *` does,
    also fits the text without arguments.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    allow: tuple[str, ...] = Field(default=())
    """Calls made without asking."""
    ask: tuple[str, ...] = Field(default=())
    """Calls that need approval, whatever allows them."""
    deny: tuple[str, ...] = Field(default=())
    """Refused calls."""

    @field_validator("allow", "ask", "deny")
    @classmethod
    def _have_the_form(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        for rule in rules:
            if _FORM.fullmatch(rule.strip()) is None:
                raise ValueError(f"{rule!r} is not a rule")
        return rules

    def joined(self, other: PolicyRules) -> PolicyRules:
        """Return the rules of both, each once: a later layer of the configuration adds rules and removes none."""
        both = {each: tuple(dict.fromkeys(getattr(self, each) + getattr(other, each))) for each in _STRICTEST}
        return PolicyRules(**both)

    def restrictions(self, known: PolicyRules) -> PolicyRules:
        """Return the rules that ask or deny, without the `known` ones."""
        ask = tuple(rule for rule in self.ask if rule not in known.ask)
        return PolicyRules(ask=ask, deny=tuple(rule for rule in self.deny if rule not in known.deny))


@dataclass(frozen=True)
class _Rule:
    answer: Answer
    text: str
    tool: str
    pattern: str | None

    def is_about(self, tool: Tool) -> bool:
        return fnmatchcase(tool.name, self.tool)

    def fits(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Return whether the rule matches the arguments."""
        if self.pattern is None:
            return True
        names = list(tool.input_schema.get("properties", {}))
        named = _NAMED.fullmatch(self.pattern)
        if named is not None and named["argument"] in names:
            argument, glob = named["argument"], named["glob"]
        elif names:
            argument, glob = names[0], self.pattern
        else:
            return False
        if argument not in arguments:
            return False
        value = arguments[argument]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return _fits(text, glob)


class Policy:
    """Decides whether a call is allowed, needs approval or is denied: by the rules, and by the tool's own verdict."""

    def __init__(self, rules: PolicyRules | None = None) -> None:
        given = rules if rules is not None else PolicyRules()
        self._rules = [_rule(answer, text) for answer in _STRICTEST for text in getattr(given, answer)]
        self.allowed: list[str] = []
        """The rules that a person has added since."""

    def allow(self, text: str) -> None:
        """Add a rule that allows calls from now on. Raises UsageError if the text is not a rule."""
        rule = _rule("allow", text)
        if rule.text not in self.allowed:
            self.allowed.append(rule.text)
            self._rules.append(rule)

    def with_rule(self, text: str) -> Policy:
        """Return a copy of the policy with one more rule that allows. Raises UsageError if the text is not a rule."""
        other = Policy()
        other._rules = list(self._rules)
        other.allow(text)
        return other

    def verdict(
        self, tool: Tool, arguments: Mapping[str, Any], *, substitutes: str | None = None, objection: str | None = None
    ) -> CallVerdict:
        """Return the verdict on a call with these, its final, arguments. The strictest one wins.

        Without a matching rule, a tool that needs approval is asked about and any other is allowed; but one that
        is not pure and that a repair put in the place of another (`substitutes`, "" for none) is asked about too. A
        call that would be allowed is asked about if a review has an `objection` to it.
        """
        own = tool.verdict(dict(arguments))
        ruled = self._ruled(tool, arguments, substitutes)
        # If both ask, the tool's own reason is given: a rule would not help.
        verdict = min(filter(None, (own, ruled)), key=lambda each: _STRICTEST.index(each.answer))
        return CallVerdict("ask", objection) if verdict.answer == "allow" and objection is not None else verdict

    def needs_a_person(self, tool: Tool) -> bool:
        """Return whether every call of the tool is asked about or denied: it needs approval, and no rule allows one."""
        return tool.needs_approval and not any(rule.answer == "allow" and rule.is_about(tool) for rule in self._rules)

    def hides(self, path: str) -> bool:
        """Return whether a rule denies reading the file at this path, so that searches leave it out too."""
        return any(
            rule.answer == "deny"
            and rule.pattern is not None
            and fnmatchcase("Read", rule.tool)
            and fnmatchcase(path, rule.pattern.removeprefix("file_path="))
            for rule in self._rules
        )

    def check(self, known: Iterable[str]) -> None:
        """Raise UsageError for a rule that names no known tool and looks like a typo: it would protect nothing."""
        names = sorted(known)
        for rule in self._rules:
            if any(fnmatchcase(name, rule.tool) for name in names):
                continue
            if near := close(rule.tool, names, 0.75):
                raise UsageError(
                    f"the policy rule {rule.text!r} names no tool; did you mean {near!r}? Tool names are case-sensitive"
                )

    def restricted(self, tool: Tool, arguments: Mapping[str, Any]) -> CallVerdict | None:
        """Return the verdict of the rules that ask or deny; None if none of them matches the call."""
        stricter = [rule for rule in self._rules if rule.is_about(tool) and rule.answer != "allow"]
        if not stricter:
            return None
        parts: list[dict[str, Any]] | None = []
        seen = [arguments]
        if any(rule.pattern is not None for rule in stricter):
            parts = tool.parts(dict(arguments))
            seen += [*(parts or ()), *tool.spellings(dict(arguments))]
        for rule in stricter:
            if any(rule.fits(tool, part) for part in seen):
                return CallVerdict(rule.answer, f"the rule {rule.answer}: {rule.text}")
        if parts is None:
            return CallVerdict("ask", f"what the call would do is unclear, and it may match {stricter[0].text!r}")
        return None

    def allowing(self, tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
        """Return the rules that together allow every part of a call; none if one part is left over."""
        rules = [rule for rule in self._rules if rule.is_about(tool) and rule.answer == "allow"]
        if whole := [rule.text for rule in rules if rule.pattern is None]:
            return whole[:1]
        parts = tool.parts(dict(arguments)) if rules else None
        used = [next((rule.text for rule in rules if rule.fits(tool, part)), None) for part in parts or ()]
        return [] if None in used else list(dict.fromkeys(text for text in used if text is not None))

    def _ruled(self, tool: Tool, arguments: Mapping[str, Any], substitutes: str | None) -> CallVerdict:
        if (restricted := self.restricted(tool, arguments)) is not None:
            return restricted
        if allowing := self.allowing(tool, arguments):
            return CallVerdict("allow", f"the rule allow: {', '.join(allowing)}")
        if tool.needs_approval or (substitutes is not None and tool.effect != "pure"):
            return CallVerdict("ask", unruled(tool, substitutes))
        return CallVerdict("allow", f"{tool.name!r} needs no approval")


def unruled(tool: Tool, substitutes: str | None = None) -> str:
    """Return why a call of a tool that needs approval is asked about although no rule matches: one may allow it."""
    if substitutes is None or tool.effect == "pure":
        return f"{tool.name!r} needs approval"
    named = f"the tool {substitutes!r}" if substitutes else "no tool"
    return f"a repair chose {tool.name!r} for a step that names {named}"


def _rule(answer: Answer, text: str) -> _Rule:
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"the policy rule {text!r} must have the form TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB)")
    return _Rule(answer, text.strip(), found["tool"], found["pattern"])


MAX_RULE = 200
"""The most characters of a rule; a longer one is neither proposed nor accepted, since nobody reads it."""
_ARGUMENT = re.compile(r"(\w+)=")


def propose_rule(
    policy: Policy, tool: Tool, arguments: Mapping[str, Any], *, substitutes: str | None, objection: str | None
) -> dict[str, Any]:
    """Return the proposal of a `CallVerdict`: a rule that lets this policy allow the call, or why none does."""
    own, parts = tool.verdict(dict(arguments)), tool.parts(dict(arguments))
    if own is not None:
        return {"why_not": own.reason}
    if parts is None:
        return {"why_not": "the effect of the call is unknown"}
    if len(parts) != 1:
        return {"why_not": "the call does several things"}
    names = list(tool.input_schema.get("properties", {}))
    try:
        pattern = tool.rule_pattern(dict(arguments))
    except ToolError as error:
        return {"why_not": error.message}
    if pattern is not None and (named := _ARGUMENT.match(pattern)) and named[1] in names:
        pattern = f"{names[0]}={pattern}"
    rule = tool.name if pattern is None else f"{tool.name}({pattern})"
    if not rule.isprintable():
        return {"why_not": "the call has a line break or another control character"}
    if len(rule) > MAX_RULE:
        return {"why_not": "the call is too long for a rule"}
    verdict = policy.with_rule(rule).verdict(tool, arguments, substitutes=substitutes, objection=objection)
    if verdict.answer != "allow":
        return {"why_not": verdict.reason}
    about = parts[0].get(names[0]) if names else None
    return {"rule": rule, **({"about": about} if isinstance(about, str) and len(about) <= MAX_RULE else {})}


def rule_problem(rule: str, tool_name: str, about: str | None, names: Sequence[str] = ()) -> str | None:
    """Return in one line what is wrong with a person's rule for a call, None if nothing is.

    `about` is the text of the proposal that the rule is matched against, `names` are those of the tool's arguments.
    """
    text = rule.strip()
    form = _FORM.fullmatch(text)
    if form is None or "\n" in text:
        return "a rule has the form TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB)"
    if len(text) > MAX_RULE:
        return f"the rule is too long; use at most {MAX_RULE} characters"
    if any(sign in form["tool"] for sign in "*?[") or form["tool"] != tool_name:
        return f"the rule must begin with {tool_name}: it is saved for calls like this one"
    pattern = form["pattern"]
    if pattern is None or about is None:
        return None
    if (named := _ARGUMENT.match(pattern)) and named[1] in names:
        if named[1] != names[0]:
            return None
        pattern = pattern[named.end() :]
    return None if _fits(about, pattern) else f"the rule does not fit this call: {about}"


def _fits(text: str, glob: str) -> bool:
    return fnmatchcase(text, glob) or (glob.endswith(" *") and fnmatchcase(text, glob.removesuffix(" *")))
