"""TaskProfile: tiers, coherence, at most one tier of drift (adaptive FR-NEW-004 to FR-NEW-007)."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ValidationError
from aeon_core.task_profile import (
    DIMENSIONS,
    PROFILE_SCHEMA,
    TaskProfile,
    coherent,
    contradictions,
    default_profile,
    drift,
    moved,
    profile_request,
    read_profile,
    read_profile_reply,
    tier,
)

LEAST = {name: tiers[0] for name, tiers in DIMENSIONS.items()}
profiles = st.fixed_dictionaries({name: st.sampled_from(tiers) for name, tiers in DIMENSIONS.items()}).map(
    lambda values: profile(**values)
)


def profile(**values: Any) -> TaskProfile:
    return TaskProfile(**{"profile_version": 1, "raw_inference": "said", **LEAST, **values})


def test_a_profile_has_the_seven_fields_of_the_schema() -> None:
    assert list(TaskProfile.model_fields) == ["profile_version", *DIMENSIONS, "raw_inference"]
    assert DIMENSIONS["expected_tool_usage"] == ("none", "minimal", "moderate", "extensive")
    assert DIMENSIONS["output_breadth"] == ("narrow", "moderate", "broad")


@pytest.mark.parametrize(
    "values",
    [{"reasoning_depth": "huge"}, {"profile_version": 0}, {"raw_inference": " "}, {"more": 1}],
    ids=["tier", "version", "blank", "extra"],
)
def test_a_profile_rejects_other_fields(values: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        profile(**values)


@pytest.mark.parametrize(
    ("dimension", "value"),
    [("information_sufficiency", "low"), ("expected_tool_usage", "extensive"), ("output_breadth", "broad")],
)
def test_demanding_dimensions_exclude_low_depth(dimension: str, value: str) -> None:
    sufficient = {"information_sufficiency": "high", dimension: value}
    (sentence,) = contradictions(profile(**sufficient))

    assert dimension in sentence
    made = coherent(profile(**sufficient))
    assert made.reasoning_depth == "medium"
    assert made.raw_inference == f"said reasoning_depth was raised to medium: {sentence}."
    assert contradictions(profile(**sufficient, reasoning_depth="medium")) == []


@given(profiles)
def test_every_profile_can_be_made_coherent(any_profile: TaskProfile) -> None:
    made = coherent(any_profile)

    assert contradictions(made) == []
    assert coherent(made) == made


@given(profiles.map(coherent), profiles.map(coherent))
def test_drift_is_at_most_one_tier_and_stays_coherent(before: TaskProfile, after: TaskProfile) -> None:
    made = drift(before, after)

    assert all(abs(tier(made, name) - tier(before, name)) <= 1 for name in DIMENSIONS)
    assert contradictions(made) == []
    if all(abs(tier(after, name) - tier(before, name)) <= 1 for name in DIMENSIONS):
        assert made == after


def test_a_held_back_change_is_reported() -> None:
    made = drift(profile(), profile(reasoning_depth="high", expected_tool_usage="moderate"))

    assert (made.reasoning_depth, made.expected_tool_usage) == ("medium", "minimal")
    assert made.raw_inference.endswith("Held to one tier of change: reasoning_depth, expected_tool_usage.")


def test_a_dimension_at_its_end_does_not_move() -> None:
    assert moved(profile(), {"reasoning_depth": -1, "output_breadth": 1}) == {"output_breadth": "moderate"}


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
    asked = profile_request("Do  X?", [{"name": "echo"}], ttl_remaining=3, ttl_limit=9, max_tokens=50)

    assert (asked.purpose, asked.max_tokens, asked.schema) == ("profile", 50, PROFILE_SCHEMA)
    assert asked.most == {"requirements": 8, "follow_up_questions": 5}
    assert asked.system.startswith("Aeon profile\n")
    assert asked.prompt == (
        '<task>\nDo  X?\n</task>\n\n<tools>\n{"name": "echo"}\n</tools>\n\n<ttl>\n3 cycles remaining of 9\n</ttl>'
    )
    known = profile_request("Do X?", [], memory="an earlier prompt", ttl_remaining=3, ttl_limit=9, max_tokens=50)
    assert "<memory>\nan earlier prompt\n</memory>" in known.prompt
    assert PROFILE_SCHEMA["required"] == list(PROFILE_SCHEMA["properties"])


@pytest.mark.parametrize("reply", [REPLY, json.dumps(REPLY)], ids=["value", "text"])
def test_a_reply_becomes_the_first_version_of_a_profile(reply: Any) -> None:
    made = read_profile(reply)

    assert made.model_dump() == {
        "profile_version": 1,
        "reasoning_depth": "high",
        "information_sufficiency": "medium",
        "expected_tool_usage": "minimal",
        "output_breadth": "broad",
        "confidence_requirement": "low",
        "raw_inference": "because",
    }


def test_an_incoherent_reply_is_corrected_and_reported() -> None:
    made = read_profile({**REPLY, "reasoning_depth": "low"})

    assert made.reasoning_depth == "medium"
    assert "reasoning_depth was raised to medium" in made.raw_inference


def test_every_problem_is_named() -> None:
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
def test_any_reply_is_parsed_or_refused(reply: Any) -> None:
    with pytest.raises(ValidationError, match="not a valid TaskProfile"):
        read_profile(reply)


REQUIREMENTS: list[tuple[Any, list[str]]] = [
    (["Le total est en euros.", " Le  total\nest en euros. ", "", None, 3], ["Le total est en euros."]),
    ([{"n": 1, "text": "合計を示す。"}, {"text": None}], ["合計を示す。"]),
    ("The total is told.", ["The total is told."]),
    ([str(n) for n in range(20)], [str(n) for n in range(8)]),
    (["x" * 1000], ["x" * 300]),
    # As a small model writes it that forgets to close the list.
    (
        ["The oranges are counted.", "follow_up_questions", "reasoning_depth", " raw_inference"],
        ["The oranges are counted."],
    ),
    (None, []),
    ({}, []),
]


@pytest.mark.parametrize(("given_as", "read"), REQUIREMENTS)
def test_requirements_are_read_each_once_and_at_most_eight(given_as: Any, read: list[str]) -> None:
    assert read_profile_reply({**REPLY, "requirements": given_as}).requirements == read


def test_a_reply_holds_profile_requirements_and_questions() -> None:
    reply = read_profile_reply(json.dumps({**REPLY, "requirements": ["a"], "follow_up_questions": ["Which file?"]}))
    assert (reply.profile, reply.requirements) == (read_profile(REPLY), ["a"])
    assert reply.follow_up_questions == ["Which file?"]
    asking = {**REPLY, "follow_up_questions": [{"question": "Which file?", "why": "there are two"}, {"why": "x"}]}
    assert read_profile_reply(asking).follow_up_questions == ["Which file?"]


@pytest.mark.parametrize(("tools", "usage"), [(0, "none"), (3, "moderate")])
def test_without_a_usable_reply_each_dimension_has_its_middle_value(tools: int, usage: str) -> None:
    made = default_profile(tools=tools)

    assert contradictions(made) == []
    assert (made.profile_version, made.expected_tool_usage) == (1, usage)
    assert {made.reasoning_depth, made.information_sufficiency, made.confidence_requirement} == {"medium"}
    assert made.output_breadth == "moderate"
    assert "not usable" in made.raw_inference
