"""The view of a run: its model, the reducer that folds records into it, and its texts (Decision 3)."""
