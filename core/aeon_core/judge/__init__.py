"""A model's verdicts on results and plans, each with checked quotes.

`result.judge_result`, `judgement.review_request`, `judgement.Judgement`; `agreement` measures them against labels.
"""
