"""Checks that code can prove.

`plan_checks` and `result_checks` check, `validator.SemanticValidator` reports, `lint.lint` checks a plan file.
"""
