"""The terminal, the browser, the editor and the process that the app runs in. Nothing here knows a run."""
