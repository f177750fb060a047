"""The documentation site: the pages of `docs/`, and reference pages generated from the code. `./dev docs` builds it."""
