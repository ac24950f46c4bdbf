"""`python -m backoff_schedule`: the `backoff-schedule` command."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
