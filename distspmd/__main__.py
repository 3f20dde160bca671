"""``python -m distspmd``: the same as the command ``distspmd``."""

import sys

from distspmd.cli import main

if __name__ == "__main__":
    sys.exit(main())
