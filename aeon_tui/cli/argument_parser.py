"""How a command line is parsed: what is wrong with it is one line, which names the nearest thing that there is."""

from __future__ import annotations

import argparse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and knows the nearest name for a misspelt one."""

    def __init__(self, fill: Callable[[Parser], None] | None = None, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)
        self._fill = fill

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._fill is not None:
            self._fill(self)
            self._fill = None
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            from aeon_core.suggest import unknown_argument

            self.error(unknown_argument(rest[0], self._option_string_actions))
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        from aeon_core.errors import UsageError

        raise UsageError(f"{message}; see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from aeon_core.suggest import did_you_mean

            is_command = isinstance(action, argparse._SubParsersAction)
            near = did_you_mean(str(value), list(map(str, action.choices)))
            if not is_command:
                near = near or f"; choose from {', '.join(map(str, action.choices))}"
            elif not near or " " in value:
                near = f"; to run a task: {self.prog} run {_as_task(str(value))}"
            self.error(f"unknown {'command' if is_command else 'value'} {value!r}{near}")


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)


class Version(argparse.Action):
    """Prints the version, and ends."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from aeon_core.installation import versions

        print(f"aeon-tui {versions()['aeon']}")
        parser.exit()


def _as_task(text: str) -> str:
    import shlex

    return shlex.quote(text) if " " in text else f"'{text} …'" if text.isalnum() else "'…'"
