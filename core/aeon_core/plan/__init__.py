"""Plans, and how they are read and changed.

`models.Plan`, `parsing.parse_plan` for replies, `files` for files, `refinement` for changes between passes.
"""
