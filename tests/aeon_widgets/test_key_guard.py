"""Which keys a question takes, by the times at which they were pressed."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from aeon_widgets.keys import REPEAT_SECONDS, SILENCE_SECONDS, KeyGuard


class Now:
    """A clock that stops until it is moved."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def armed() -> tuple[KeyGuard, Now]:
    """Return a guard whose question has just come, and its clock."""
    clock = Now()
    guard = KeyGuard(clock)
    guard.arm()
    return guard, clock


def test_a_key_in_the_first_half_second_is_swallowed() -> None:
    assert not armed()[0].admits("a", 100.49)
    assert armed()[0].admits("a", 100.5)


def test_a_swallowed_key_restarts_the_half_second() -> None:
    guard, _ = armed()
    taken = [
        guard.admits(key, at) for key, at in (("x", 100.4), ("y", 100.8), ("a", 101.2), ("a", 101.69), ("a", 102.2))
    ]
    assert taken == [False, False, False, False, True]


def test_scrolling_is_never_swallowed_and_does_not_reset_the_guard() -> None:
    guard, _ = armed()
    assert all(guard.admits("down", 100.0 + tick / 10, harmless=True) for tick in range(6))
    assert guard.admits("a", 100.55)


def test_continued_typing_after_a_swallowed_key_is_swallowed() -> None:
    guard, _ = armed()
    assert not guard.admits("o", 100.1)
    assert all(guard.admits("w", 100.1 + tick / 10, harmless=True) for tick in range(1, 20))
    assert not guard.admits("enter", 102.1)
    assert guard.admits("enter", 102.6)


def test_a_key_that_is_held_down_does_not_answer_the_next_question() -> None:
    guard, clock = armed()
    assert guard.admits("a", 101.0)
    clock.now = 101.05
    guard.arm()
    first_repeat = 101.0 + 0.66
    assert not guard.admits("a", first_repeat)
    assert not any(guard.admits("a", first_repeat + tick / 30) for tick in range(1, 90))
    assert guard.admits("a", first_repeat + 3 + SILENCE_SECONDS)


def test_another_key_answers_the_next_question_after_half_a_second() -> None:
    guard, clock = armed()
    assert guard.admits("a", 101.0)
    clock.now = 101.05
    guard.arm()
    assert guard.admits("d", 101.6)


def test_a_key_pressed_before_the_question_is_swallowed_even_if_handled_late() -> None:
    guard, clock = armed()
    clock.now = 200.0
    assert not guard.admits("a", 99.0)


KEY = st.tuples(st.sampled_from("adwq↓"), st.floats(0.0, 1.2))


@example([("a", 0.0), ("new", 0.25), ("w", 0.25), ("a", 0.25)])
@given(st.lists(st.one_of(KEY, st.tuples(st.just("new"), st.floats(0.0, 1.2))), max_size=40))
def test_no_key_is_accepted_early_or_right_after_a_swallowed_one(events: list[tuple[str, float]]) -> None:
    guard, clock = armed()
    new_at, last, typed, silent = 100.0, "", float("-inf"), True
    """When the question came, the last key and its time, and whether no key was swallowed since the last silence."""
    decided = False
    for key, gap in events:
        clock.now += gap
        if key == "new":
            guard.arm()
            new_at, decided = clock.now, True
            continue
        silent = silent or clock.now - typed >= SILENCE_SECONDS
        harmless = key in "w↓"
        early = clock.now - new_at < SILENCE_SECONDS
        held = decided and key == last and clock.now - typed < REPEAT_SECONDS
        taken = guard.admits(key, clock.now, harmless=harmless)
        assert taken == (harmless or (silent and not early and not held))
        silent, decided = silent and taken, False
        last, typed = key, clock.now
