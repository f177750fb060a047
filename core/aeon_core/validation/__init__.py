"""Checks that code can prove.

`plan_checks` and `result_checks` check; `validator` has SemanticValidator, which reports, and lint_plan for plan files.
"""
