"""When a result counts as finished.

`criteria.load_criteria`, `engine.ConvergenceEngine`, `assessment.ConvergenceAssessment`.
"""
