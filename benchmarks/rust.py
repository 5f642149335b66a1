"""The Rust side of the benchmarks, `sinter-bench`: generates data, and measures what needs no Python."""

from __future__ import annotations

import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

from benchmarks import machine


def build(peers: bool = False) -> Path:
    """Build `sinter-bench`, with the other Rust engines where asked to, and return its path."""
    # All of the workspace, so that libraries have the features that the shell's and the wheel's build gave them.
    command = ["cargo", "build", "--release", "--workspace", "--bin", "sinter-bench"]
    subprocess.run([*command, *(["--features", "sinter-bench/peers"] if peers else [])], cwd=machine.ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return machine.ROOT / target / "release" / "sinter-bench"


def build_stores(with_rocksdb: bool) -> Path:
    """Build what measures the other key-value stores, in a workspace of its own, and return its path."""
    folder = machine.ROOT / "benchmarks" / "stores"
    features = "rocksdb" if with_rocksdb else "peers"
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--features",
        features,
        "--target-dir",
        str(folder / "target"),
    ]
    # RocksDB's build reads its headers by libclang, which a package has, without the headers of a compiler.
    libclang = metadata.distribution("libclang").locate_file("clang/native")
    headers = subprocess.run(["cc", "-print-file-name=include"], capture_output=True, text=True, check=True)
    found = {"LIBCLANG_PATH": str(libclang), "BINDGEN_EXTRA_CLANG_ARGS": f"-I{headers.stdout.strip()}"}
    # Others get what this processor has; RocksDB has no checksums by its instructions otherwise. We choose at run time.
    found["RUSTFLAGS"] = "-C target-cpu=native"
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **found})
    return folder / "target" / "release" / "stores"


def versions_of_stores() -> dict[str, str]:
    """Return the versions of the other key-value stores, as their workspace locks them."""
    locked = (machine.ROOT / "benchmarks" / "stores" / "Cargo.lock").read_text()
    found = dict(re.findall(r'^name = "([^"]+)"\nversion = "([^"]+)"$', locked, re.M))
    return {name: found[name] for name in ("fjall", "heed", "librocksdb-sys", "lmdb-master-sys", "redb")}


def generate(scale_factor: float, folder: Path, form: str = "parquet") -> None:
    """Write the tables of TPC-H that are not in the folder yet."""
    command = [str(build()), "tpch-gen", "--sf", f"{scale_factor:g}", "--format", form, "--out", str(folder)]
    subprocess.run(command, check=True)
