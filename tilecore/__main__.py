"""The command `tilecore`, and `python -m tilecore`.

Errors while Python imports NumPy and tilecore, such as a malformed environment variable or an early Ctrl-C, show
Python's own traceback.
"""

import sys

from tilecore._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
