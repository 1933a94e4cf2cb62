"""`python -m opsmith` is the command `opsmith`."""

import os
import sys

from opsmith.cli import main

if __name__ == "__main__":
    if sys.path[0] == os.getcwd():  # as for `opsmith`: what lies beside somebody's task files is not imported
        del sys.path[0]
    main()
