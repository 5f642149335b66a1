"""What is counted in a log of system calls."""

from benchmarks import commits

LOG = """\
7 pwrite64(3</d/t.log>, ""..., 1000, 0) = 1000
7 newfstatat(AT_FDCWD</x>, "/measured-from-here-to-here", 0x7ffc, 0) = -1 ENOENT (No such file or directory)
7 pwrite64(3</d/t.log>, ""..., 100, 0) = 100
7 fdatasync(3</d/t.log>) = 0
8 pwrite64(3</d/t.log>, ""..., 100, 100 <unfinished ...>
7 write(1</dev/null>, ""..., 50) = 50
7 fdatasync(3</d/t.log> <unfinished ...>
8 <... pwrite64 resumed>) = 60
7 <... fdatasync resumed>) = 0
8 fsync(4</d>) = 0
8 statx(AT_FDCWD</x>, "/measured-from-here-to-here", AT_STATX_SYNC_AS_STAT, STATX_ALL, 0x7ffc) = -1 ENOENT (No such)
8 fsync(4</d>) = 0
8 write(3</d/t.log>, ""..., 100) = 100
"""


def test_calls_between_the_marks_count_once() -> None:
    assert commits.counts(LOG, "/d", 2) == {
        "commits": 2,
        "syncs_per_commit": {"fdatasync": 1.0, "fsync": 0.5},
        "bytes_written_per_commit": 80.0,
    }
