"""`python -m backflip`: the command line, of exactly the backflip that this interpreter finds."""

import sys

from backflip.cli.main import main

sys.exit(main())
