"""The documentation site: the pages of `docs/`, and reference pages made from the code. `./dev docs` builds it."""
