"""Starts the command line, as the command `tilecore` and as `python -m tilecore`."""

import sys

from tilecore._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
