"""`python -m aeon_tui`: the same as the `aeon-tui` command."""

import sys

from aeon_tui.cli.main import main

sys.exit(main())
