"""The command `tilecore`, and `python -m tilecore`.

Python imports NumPy and tilecore before any code of the command runs. What ends that, a malformed
environment variable or Ctrl-C in the first moment, shows Python's own traceback.
"""

import sys

from tilecore._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
