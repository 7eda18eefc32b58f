"""The door of the command `tilecore`, and of `python -m tilecore`; its rooms are in `_cli`."""

import sys

from tilecore._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
