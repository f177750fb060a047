"""The screen of one workflow."""
