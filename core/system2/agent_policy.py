"""Which calls of an agent are made, asked about or refused (REQ-027…029, REQ-110, REQ-115)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools.base import Tool, Verdict
from aeon_core.tools.shell.blocklist import judge
from aeon_core.tools.shell.commands import unknown_program
from system2.agents.tools import Allowance
from system2.context import WorkflowContext
from system2.protected_files import is_own_work, is_protected

_CHANGES = ("Write", "Edit")


class AgentPolicy(Policy):
    """What the agent's file allows it, what it may change without being asked, and what a person has allowed since.

    `writes` are the files that it may change without a person's approval; None for all.
    """

    def __init__(
        self, agent: str, allowance: Allowance, context: WorkflowContext, writes: Collection[str] | None
    ) -> None:
        super().__init__()
        self._agent, self._allowance, self._context, self._writes = agent, allowance, context, writes
        self._rules_of_project = context.rules or context.settings
        self.allowed: list[str] = context.allowed

    def verdict(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        substitutes: str | None = None,
        objection: str | None = None,
    ) -> Verdict:
        """Return what is to happen with a call; journaled by the port, since it depends on the file system."""
        if (refusal := self._allowance.refusal(tool, arguments)) is not None:
            return Verdict("deny", refusal)
        rules = self._rules_now()
        unsafe = tool.name == "Bash" and self._context.unsafe_bash and self._is_plain(str(arguments.get("command")))
        if unsafe and rules.restricted(tool, arguments) is None:
            return Verdict("allow", "--unsafe-bash")
        if tool.name in _CHANGES:
            return self._change(rules, tool, arguments)
        return rules.verdict(tool, arguments, substitutes=substitutes, objection=objection)

    def _is_plain(self, command: str) -> bool:
        return judge(command, self._rules_of_project.bash_blocklist) is None and unknown_program(command) is None

    def _change(self, rules: Policy, tool: Tool, arguments: Mapping[str, Any]) -> Verdict:
        own, restricted = tool.verdict(dict(arguments)), rules.restricted(tool, arguments)
        for verdict in (own, restricted):
            if verdict is not None and verdict.answer == "deny":
                return verdict
        places = tool.parts(dict(arguments))
        path = str(places[0].get("file_path", "")) if places else ""
        owns = is_own_work(self._agent, path)
        if not owns and (own is not None or is_protected(path)):
            return own or Verdict("ask", f"{path!r} controls the workflow or other tools")
        if restricted is not None:
            return restricted
        if not owns and self._writes is not None and path not in self._writes:
            reason = f"it is outside the agent's document, {', '.join(sorted(self._writes))}"
        elif self._rules_of_project.file_changes == "ask":
            reason = "the settings ask about every change"
        else:
            return Verdict("allow", "the agent may change this file")
        ruled = rules.verdict(tool, arguments)
        return ruled if ruled.answer == "allow" else Verdict("ask", reason)

    def _rules_now(self) -> Policy:
        rules = self._context.policy
        return Policy(PolicyRules(allow=(*rules.allow, *self.allowed), ask=rules.ask, deny=rules.deny))
