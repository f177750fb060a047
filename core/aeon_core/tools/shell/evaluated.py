"""What bash reads once more as it runs: arithmetic, subscripts and prompts, in which quotes hide no substitution.

`[[ 'a[$(rm x)]' -eq 0 ]]` runs rm although the text is quoted, and so do `$((v))`, `printf -v`, `test -v` and `${v@P}`
where a variable holds such a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aeon_core.tools.shell.ast import SimpleCommand
from aeon_core.tools.shell.mending import all_nodes
from aeon_core.tools.shell.words import Node, Variables, joined, source_of

_TEXTS = {"raw_string", "string", "ansi_c_string", "concatenation", "word"}
_SUBSTITUTES = re.compile(r"\$\(|`")
_IN_SUBSCRIPT = re.compile(r"\w\[[^\n]*?(?:\$\(|`)")
_PROMPTS = re.compile(r"@P\}|\bPS[0-4]=|\bcompgen\b")
_INNER = re.compile(r"\$\((.*)\)|`(.*)`", re.DOTALL)

_OPERATOR = re.compile(r"(?<=\s)-[a-zA-Z]{1,2}(?=\s)")
_COMPARES = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v|R)\s")
_NAMES = re.compile(r"[A-Za-z_'\"\\`]|\$[\w{(]")
_SUBSCRIPT = re.compile(r"\[(?:\d*|[@*])\]\Z")
_CUT = re.compile(r"\$\{!?\w+(?:\[[^\]]*\])?(?::(?!\s*\d+(?::\d+)?\})[^-=+?]|[^}]*@P\})")
_SETTERS = {"read", "unset", "declare", "typeset", "local", "readonly", "export", "mapfile", "readarray", "wait"}


def hidden_scripts(root: Node, source: str, variables: Variables) -> Iterator[str]:
    """Yield what quoted substitutions would run where bash may read their text again."""
    if not _SUBSTITUTES.search(source):
        return
    fitting = _SUBSTITUTES if _PROMPTS.search(source) else _IN_SUBSCRIPT
    seen: set[str] = set()
    for node in all_nodes(root):
        if node.type not in _TEXTS:
            continue
        text, whole = joined([node], variables)
        if not whole or text in seen or not fitting.search(text):
            continue
        seen.add(text)
        yield from (found[1] or found[2] or "" for found in _INNER.finditer(text))


def computes(root: Node) -> bool:
    """Return whether anything in the tree is computed from what cannot be told: then it may run anything."""
    return any(_computes(node) for node in all_nodes(root))


def assigns_by_name(command: SimpleCommand) -> bool:
    """Return whether the command takes a name with a subscript, or that cannot be told: bash evaluates it."""
    program, words = command.program, command.arguments
    if program == "let":
        return True
    if program in {"test", "[", "printf"}:
        names = [index + 2 for index, word in enumerate(words[:-1]) if word == "-v"]
        names += [1] if words[:1] and re.fullmatch(r"-v.+", words[0]) else []
    elif program in _SETTERS:
        names = list(range(1, len(command.words)))
        if any(re.fullmatch(r"-[a-zA-Z]*[in][a-zA-Z]*", word) for word in words) and program not in {"read", "export"}:
            return True
    else:
        return False
    return any(not command.literal[at] or re.search(r"^[^=]*\[", command.words[at]) for at in names)


def _computes(node: Node) -> bool:
    text = source_of(node)
    match node.type:
        case "arithmetic_expansion" | "c_style_for_statement":
            head = text.partition("do")[0] if node.type == "c_style_for_statement" else text
            return bool(_NAMES.search(head.replace("for", "", 1)))
        case "compound_statement" | "test_command" if text.startswith("(("):
            return bool(_NAMES.search(text))
        case "test_command":
            compared = _COMPARES.search(text) if text.startswith("[[") else re.search(r"\s-[vR]\s", text)
            return bool(compared and _NAMES.search(_OPERATOR.sub("", text)))
        case "subscript":
            return not _SUBSCRIPT.search(text)
        case "expansion":
            return bool(_CUT.match(text))
    return False
