//! Samples of this program by `perf`, when it runs one of its hidden commands.

use crate::Failure;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Samples a second of processor time.
pub(crate) const SAMPLES_PER_SECOND: u32 = 1999;

/// Runs a command that prints how often it did its work, and returns that and the samples as text: paragraphs of one line
/// for the event, and one for each function on the stack, innermost first. Beside `file` is room for the samples.
///
/// # Errors
/// Where perf is missing, or the command fails.
pub(crate) fn sampled(file: &Path, command: &[&OsStr]) -> Result<(u32, String), Failure> {
    let samples = file.with_extension("perf");
    let recorded = Command::new("perf")
        .args(["record", "--quiet", "--event", "cpu-clock:u", "--call-graph", "dwarf,16384"])
        .args(["--freq", &SAMPLES_PER_SECOND.to_string(), "--output"])
        .arg(&samples)
        .arg("--")
        .arg(std::env::current_exe()?)
        .args(command)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("perf: {error}"))?;
    if !recorded.status.success() {
        return Err(format!("perf record ended with {}", recorded.status).into());
    }
    let runs = String::from_utf8(recorded.stdout)?.trim().parse()?;
    let script = Command::new("perf")
        .args(["script", "--no-inline", "--fields", "event,ip,sym", "--input"])
        .arg(&samples)
        .stderr(Stdio::null())
        .output()?;
    std::fs::remove_file(&samples)?;
    if !script.status.success() {
        return Err(format!("perf script ended with {}", script.status).into());
    }
    Ok((runs, String::from_utf8_lossy(&script.stdout).into_owned()))
}
