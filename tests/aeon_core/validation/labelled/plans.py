"""The labelled plans: those that ship, and those of other fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

PLANS = (files("aeon_core") / "judge" / "labelled" / "plans.jsonl", Path(__file__).with_name("fields.jsonl"))


def labelled_plans() -> Iterator[dict[str, Any]]:
    """Yield each plan with its labels."""
    yield from map(json.loads, chain.from_iterable(path.read_text(encoding="utf-8").splitlines() for path in PLANS))
