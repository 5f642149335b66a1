//! What the process has in memory.

/// Memory of this process.
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    /// In no file.
    pub anonymous_bytes: u64,
    /// Pages of files that are mapped: programs, and databases of engines that map them.
    pub file_bytes: u64,
    /// The most that it ever had, of both.
    pub peak_bytes: u64,
}

/// What the process has in memory now.
pub fn now() -> Resident {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    let [anonymous, file, shared, peak] =
        ["RssAnon", "RssFile", "RssShmem", "VmHWM"].map(|name| bytes(name).unwrap_or_default() * 1024);
    Resident { anonymous_bytes: anonymous, file_bytes: file + shared, peak_bytes: peak }
}

/// From now on the peak is that of what comes; as far as the system lets a process say so.
pub(crate) fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
