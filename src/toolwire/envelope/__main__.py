"""`python -m toolwire.envelope`: the command `te`, wherever it is installed."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the working directory: a `json.py` in it would be imported in place of the library's

from toolwire.envelope.te.main import main

main()
