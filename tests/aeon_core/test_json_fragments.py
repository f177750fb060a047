"""What a text that is no JSON certainly says is kept by its repair (core FR-032)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core.loose_json import text_refusal


@pytest.mark.parametrize("item", ["a", "[redacted:0a1b2c3d4e5f]", "see [1] {2}", 'a \\"b\\"'])
def test_a_repair_must_keep_every_list_item(item: str) -> None:
    def refusal(items: list[Any]) -> str | None:
        return text_refusal(f'{{"keys": ["{item}", "z"], "n": 1', {"keys": items, "n": 1}, cut=False, name=str)

    kept = item.replace('\\"', '"')
    assert refusal([kept, "z"]) is None
    for changed in (["z"], [kept], ["z", kept]):
        assert refusal(changed) == "what the original says under 'keys' was changed; a repair keeps it"
