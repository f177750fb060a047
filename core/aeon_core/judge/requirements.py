"""The file of requirements that a finished answer must satisfy (contract: --requirements)."""

from __future__ import annotations

from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.json_safe import clean_text
from aeon_core.regular_file import read_text
from aeon_core.suggest import shown
from aeon_core.yaml_file import load_yaml

_MAX_BYTES, MAX_REQUIREMENTS, MAX_REQUIREMENT = 1_000_000, 50, 1_000
_LISTS = (".yml", ".yaml", ".json")


def load_requirements(path: Path | str) -> list[str]:
    """Return the requirements of a text file, one per line; blank lines do not count (contract: --requirements).

    A .yml, .yaml or .json file holds them as a list.

    Raises UsageError in one line that names the file.
    """
    where = f"the requirements file {str(path)!r}"
    given = load_yaml(path, where) if Path(path).suffix.lower() in _LISTS else None
    if given is None:
        given = read_text(path, where, _MAX_BYTES).split("\n")
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise UsageError(f"{where} is {shown(given)}; expected a list of texts, `- The answer names a date`")
    lines = (" ".join(clean_text(line).split()) for line in given)
    if not (found := list(dict.fromkeys(line for line in lines if line))):
        raise UsageError(f"{where} has no requirements; write one per line")
    if len(found) > MAX_REQUIREMENTS or max(map(len, found)) > MAX_REQUIREMENT:
        most = f"at most {MAX_REQUIREMENTS} of at most {MAX_REQUIREMENT} characters"
        raise UsageError(f"{where} has more than a judge can answer; write {most}, one per line")
    return found
