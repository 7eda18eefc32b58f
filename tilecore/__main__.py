"""The command `tilecore`, and `python -m tilecore`.

Python imports NumPy and tilecore first. What ends that, a malformed environment variable or an early
Ctrl-C, shows Python's own traceback.
"""

import sys

from tilecore._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
