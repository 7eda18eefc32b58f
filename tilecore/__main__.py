"""The command `tilecore`, and `python -m tilecore`."""

import sys

from tilecore._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
