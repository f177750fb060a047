"""`python -m tools.widget_demos WIDGET`."""

import sys

from tools.widget_demos.app import main

if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
