"""The journal, the only source of truth (Decision 3).

`records` is its format, `writer.JournalWriter` writes it, `reader`, `follow` and `history` read it, `view` shows it.
"""
