"""Packages of npm for tests: fetched once into the cache folder, or the test is skipped with the reason."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

from toolwire.models.local.weights import cache_folder

NPM_SECONDS = 120


def installed(package: str) -> Path:
    """Return the folder above `node_modules` with a package, such as `axe-core@4.14.1`."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Node.js and npm are not installed")
    folder = cache_folder() / "npm" / package.replace("@", "-")
    folder.mkdir(parents=True, exist_ok=True)
    name = package.rpartition("@")[0]
    with FileLock(folder.with_name(f"{folder.name}.lock")):  # several processes may run tests
        if not (folder / "node_modules" / name / "package.json").exists():
            command = [npm, "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", package]
            try:
                result = subprocess.run(command, capture_output=True, text=True, timeout=NPM_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                pytest.skip(f"npm did not install {package} within {NPM_SECONDS} seconds")
            if result.returncode:
                pytest.skip(f"npm cannot install {package}: {result.stderr.strip()[-300:]}")
    return folder
