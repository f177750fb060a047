"""What a person is told at the gates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system2.gates import log_entries

LOG = """# After execution

## test-engineer
- Result: blockers
- Checked: all

## code-reviewer
* **Result:** pass

## test-engineer
- Result: pass

## notes
no result here
"""


def test_the_last_entry_of_an_agent_counts() -> None:
    assert log_entries(LOG) == {"test-engineer": "pass", "code-reviewer": "pass", "notes": ""}


@pytest.mark.parametrize("text", ["", "no heading", "## ", "# one\n- Result: pass"])
def test_an_empty_log_has_no_entries(text: str) -> None:
    assert log_entries(text) == {}


@pytest.mark.parametrize(
    "line",
    ["- Result: pass", "Result: pass", "  - result: pass", "- **Result**: pass", "* Result : pass", "- Result:pass"],
)
def test_a_result_is_found_in_any_markup(line: str) -> None:
    assert log_entries(f"## `docs-release`\n\n{line}\n- Blockers: none") == {"docs-release": "pass"}


@given(st.text(alphabet="#- Result:pasblocker\n*`\r\t", max_size=200))
def test_any_text_is_parsed(text: str) -> None:
    entries = log_entries(text)
    assert all("\n" not in name and "\n" not in result for name, result in entries.items())
