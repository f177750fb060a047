"""Validation of many steps and of long, foreign or hostile texts: linear work, no exception."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import pytest

from aeon_core.plan.models import Plan
from aeon_core.validation.validator import SemanticValidator
from tests.aeon_core.validation.labelled.large import large_plan
from tests.aeon_core.validation.labelled.tools import registry
from tests.aeon_core.validation.plans import VALIDATOR, plan
from tests.cpu_limit import cpu_limit

LONG = 100_000
SECONDS = 1.0
"""A quadratic pattern takes minutes on such texts, a linear one milliseconds."""


def calls(work: Callable[[], object]) -> int:
    """Count the calls that a piece of work makes, caches warm."""
    work()
    profile = cProfile.Profile()
    profile.runcall(work)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def worst_plan(steps: int) -> Plan:
    """Every step builds on an unknown and on a later step."""
    made = [
        {
            "step_id": f"s{n}",
            "description": f"{'Keep' if n % 2 else 'Delete'} report {n} after step 9{n} and use out{n % 7}.csv",
            "agent": "llm",
            "depends_on": [f"x{n}", f"s{n + 1}"],
        }
        for n in range(1, steps + 1)
    ]
    return Plan.model_validate({"goal": "Keep the reports", "steps": made})


@pytest.mark.parametrize("made", [large_plan, worst_plan])
def test_the_work_grows_with_the_number_of_steps(made: Callable[[int], Plan]) -> None:
    validator = SemanticValidator(registry())
    small, large = made(200), made(1000)
    assert calls(lambda: validator.validate_plan(large)) < 7 * calls(lambda: validator.validate_plan(small))


def test_the_work_on_an_execution_grows_with_the_number_of_steps() -> None:
    validator = SemanticValidator(registry())

    def work(steps: int) -> Callable[[], object]:
        made = large_plan(steps)
        results = {step.step_id: {"result": n, "text": step.description} for n, step in enumerate(made.steps)}
        given: dict[str, Any] = {"goal": made.goal, "plan": made, "results": results, "memory": results}
        return lambda: validator.validate_execution(answer=f"{made.goal}: 42", **given)

    assert calls(work(1000)) < 7 * calls(work(200))


HOSTILE = {
    "letters": "a" * LONG,
    "paths": "a/" * (LONG // 2),
    "dots": "a." * (LONG // 2),
    "hyphens": "a-" * (LONG // 2),
    "at signs": "a@" * (LONG // 2),
    "addresses": "a@b.c" * (LONG // 5),
    "links": "http://" * (LONG // 7),
    "quotes": "' a" * (LONG // 3),
    "openings": "„" * LONG,
    "ticks": "`a" * (LONG // 2),
    "digits": "1," * (LONG // 2),
    "number": "1" * LONG,
    "figures": "1 kg " * (LONG // 5),
    "names": "a-1" * (LONG // 3),
    "dates": "2026-01-01 " * (LONG // 11),
    "blanks": " " * LONG + "x",
    "lines": "\n" * LONG + "x",
    "emoji": "🙂" * LONG,
    "japanese": "データ" * (LONG // 3),
    "code": 'def f(x):\n    return {"a": [1, 2]}\n' * (LONG // 36),
    "controls": "\x00\x1b[2J\u202e" * (LONG // 6),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_long_texts_anywhere_are_checked_quickly(text: str) -> None:
    made = plan(
        f"Count the rows {text}",
        (f"List {text}", "Bash", {"command": text}),
        (f"Convert {text}", "convert_units", {"value": 1, "from_unit": text, "to_unit": text}),
        text + "z",
    )
    given: dict[str, Any] = {"results": {"s1": {"x": text}}, "memory": {"s1": {"x": text}}, "failures": {"s2": [text]}}
    with cpu_limit(SECONDS):
        VALIDATOR.validate_plan(made)
        VALIDATOR.validate_execution(goal=made.goal, plan=made, answer=text, **given)


@pytest.mark.parametrize(
    "steps",
    [
        ["Lies die Datei umsatz.csv", "Berechne den Umsatz je Monat", "Schreibe einen Bericht von zwei Seiten"],
        ["Lire le fichier ventes.csv", "Calculer les ventes par mois", "Écrire un rapport de deux pages"],
        ["Прочитать файл sales.csv", "Вычислить продажи за месяц", "Написать отчёт"],
        ["قراءة ملف المبيعات", "حساب المبيعات الشهرية", "كتابة تقرير"],
        ["sales.csvを読み込む", "月ごとの売上を計算する", "レポートを書く"],
        ["`df = pd.read_csv('sales.csv')`", "df.groupby('month').sum()", "print(df.to_markdown())"],
        ["📥 sales.csv", "🧮 sum per month", "📝 two pages on the sales"],
        ["- read sales.csv\n- drop empty rows", "1. sum per month 2. sort", 'Write "Sales of 2025" on page 1'],
    ],
    ids=["german", "french", "russian", "arabic", "japanese", "code", "emoji", "lists"],
)
def test_a_clean_plan_in_another_language_or_in_code_stays_clean(steps: list[str]) -> None:
    assert VALIDATOR.validate_plan(plan("Report the sales of 2025 by month", *steps)).issues == []
