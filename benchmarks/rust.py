"""The Rust side of the benchmarks, `sinter-bench`: generates data, and measures what needs no Python."""

from __future__ import annotations

import os
import subprocess
from importlib import metadata
from pathlib import Path

from benchmarks import machine


def build(peers: str | None = None) -> Path:
    """Build `sinter-bench`, with other engines where a feature is named that has them, and return its path."""
    # All of the workspace, so that libraries have the features that the shell's and the wheel's build gave them.
    command = ["cargo", "build", "--release", "--workspace", "--bin", "sinter-bench"]
    command += ["--features", f"sinter-bench/{peers}"] if peers else []
    subprocess.run(
        command, cwd=machine.ROOT, check=True, env={**os.environ, **(libclang() if peers == "stores" else {})}
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return machine.ROOT / target / "release" / "sinter-bench"


def libclang() -> dict[str, str]:
    """Return where the package of that name has the library, by which RocksDB's build reads its headers."""
    return {"LIBCLANG_PATH": str(Path(metadata.distribution("libclang").locate_file("clang/native")))}


def generate(scale_factor: float, folder: Path, form: str = "parquet") -> None:
    """Write the tables of TPC-H that are not in the folder yet."""
    command = [str(build()), "tpch-gen", "--sf", f"{scale_factor:g}", "--format", form, "--out", str(folder)]
    subprocess.run(command, check=True)
