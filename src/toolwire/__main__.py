"""`python -m toolwire`."""

import sys

if not sys.flags.safe_path:
    # Python puts the working directory first, so that a `json.py` in it would be imported in place of the library's.
    # It is removed before most imports; only `python -P -m toolwire`, or the command `toolwire`, covers all of them.
    del sys.path[0]

from toolwire.cli import main

main()
