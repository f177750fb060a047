"""The terminal, browser, editor and process around the app. Nothing here knows a run."""
