"""The Rust side of the benchmarks, `sinter-bench`: generates data, and measures what needs no Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from benchmarks import machine


def build(peers: bool = False) -> Path:
    """Build `sinter-bench`, with the other Rust engines where asked to, and return its path."""
    # All of the workspace, so that libraries have the features that the shell's and the wheel's build gave them.
    command = ["cargo", "build", "--release", "--workspace", "--bin", "sinter-bench"]
    subprocess.run([*command, *(["--features", "sinter-bench/peers"] if peers else [])], cwd=machine.ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return machine.ROOT / target / "release" / "sinter-bench"


def generate(scale_factor: float, folder: Path, form: str = "parquet") -> None:
    """Write the tables of TPC-H that are not in the folder yet."""
    command = [str(build()), "tpch-gen", "--sf", f"{scale_factor:g}", "--format", form, "--out", str(folder)]
    subprocess.run(command, check=True)
