"""Reports on runs and workflows as text, Markdown, HTML and JSON."""
