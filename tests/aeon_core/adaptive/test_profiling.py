"""Asking for a TaskProfile, reading it, and the one by rules (adaptive FR-027, FR-034, FR-035)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.adaptive.profile import DIMENSIONS, contradictions
from aeon_core.adaptive.profiling import PROFILE_SCHEMA, default_profile, profile_request, read_profile
from aeon_core.errors import ValidationError

REPLY = {
    "profile_version": 9,
    "reasoning_depth": " High ",
    "information_sufficiency": "medium",
    "expected_tool_usage": "minimal",
    "output_breadth": "BROAD",
    "confidence_requirement": "low",
    "raw_inference": "because",
    "note": "ignored",
}


def test_the_request_holds_the_task_word_for_word_and_a_closed_schema() -> None:
    asked = profile_request("Do  X?", [{"name": "echo"}], context="c", ttl_remaining=3, ttl_limit=9, max_tokens=50)

    assert (asked.purpose, asked.max_tokens, asked.schema) == ("profile", 50, PROFILE_SCHEMA)
    assert asked.system.startswith("Aeon profile\n")
    assert asked.prompt == (
        '<task>\nDo  X?\n</task>\n\n<tools>\n{"name": "echo"}\n</tools>\n\n<context>\nc\n</context>\n\n'
        "<ttl>\n3 cycles remaining of 9\n</ttl>"
    )
    assert PROFILE_SCHEMA["required"] == list(PROFILE_SCHEMA["properties"])


@pytest.mark.parametrize("reply", [REPLY, json.dumps(REPLY)], ids=["value", "text"])
def test_a_reply_becomes_a_profile_of_the_callers_version(reply: Any) -> None:
    made = read_profile(reply, version=2)

    assert made.model_dump() == {
        "profile_version": 2,
        "reasoning_depth": "high",
        "information_sufficiency": "medium",
        "expected_tool_usage": "minimal",
        "output_breadth": "broad",
        "confidence_requirement": "low",
        "raw_inference": "because",
    }


def test_an_incoherent_reply_is_made_coherent_and_says_so() -> None:
    made = read_profile({**REPLY, "reasoning_depth": "low"})

    assert made.reasoning_depth == "medium"
    assert "reasoning_depth was raised to medium" in made.raw_inference


def test_everything_that_is_wrong_is_named() -> None:
    with pytest.raises(ValidationError) as caught:
        read_profile({**REPLY, "reasoning_depth": "deep", "output_breadth": None, "raw_inference": ""})

    assert caught.value.context["problems"] == [
        'reasoning_depth: expected one of low, medium, high, got "deep"',
        "output_breadth: expected one of narrow, moderate, broad, got null",
        'raw_inference: expected how each dimension was determined, got ""',
    ]


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(list(REPLY)), inner),
    )
)
def test_any_reply_is_read_or_refused(reply: Any) -> None:
    with pytest.raises(ValidationError, match="not a valid TaskProfile"):
        read_profile(reply)


@pytest.mark.parametrize(
    ("task", "depth", "sufficiency"),
    [
        ("add two numbers", "low", "high"),
        ("What is the capital of France?", "low", "high"),
        ("Translate 'good morning' into French", "low", "high"),
        ("design a distributed system architecture", "high", "low"),
        ("design a system architecture for a web application with user authentication", "high", "low"),
        ("make it better", "medium", "low"),
    ],
)
def test_token_patterns_tell_simple_tasks_from_open_ones(task: str, depth: str, sufficiency: str) -> None:
    made = default_profile(task)

    assert (made.reasoning_depth, made.information_sufficiency) == (depth, sufficiency)


def test_the_rules_say_how_each_dimension_was_determined() -> None:
    made = default_profile("Deploy the billing service to production", tools=3, version=4)

    assert made.profile_version == 4
    assert made.confidence_requirement == "high"
    assert made.expected_tool_usage == "minimal"
    assert all(f"{name} is {getattr(made, name)}" in made.raw_inference for name in DIMENSIONS)
    assert default_profile("add 1 and 2").expected_tool_usage == "none"


@given(st.text(max_size=200), st.integers(0, 3))
def test_every_text_has_a_coherent_profile_and_always_the_same(task: str, tools: int) -> None:
    made = default_profile(task, tools=tools)

    assert contradictions(made) == []
    assert made == default_profile(task, tools=tools)
