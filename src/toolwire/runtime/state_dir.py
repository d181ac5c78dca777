"""The directory for data that outlives a process: the user's own, or the one that TOOLWIRE_STATE names."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TOOLWIRE_STATE"


def state_folder() -> Path:
    """Return the directory; it may not exist yet."""
    if named := os.environ.get(VARIABLE, ""):
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_state_dir("toolwire"))
