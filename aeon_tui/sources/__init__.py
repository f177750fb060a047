"""Where a screen's records come from: a live run, a journal, a run of another process, a replay."""
