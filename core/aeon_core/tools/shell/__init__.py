"""The Bash tool.

`bash.shell_tools` returns it, `blocklist` decides which commands are asked about or denied, `isolation` confines them.
"""
