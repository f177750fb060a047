"""What the kernel asks of models beside steps.

`planner.RecursivePlanner` has plans written and refined, `evaluator.Evaluator` has results judged.
"""
