//! Where and with what a benchmark ran.

use serde_json::{Map, Value, json};
use std::process::Command;

/// The processor, its threads, the system, and what else is going on: to be asked before the measurement.
pub(crate) fn describe() -> Value {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let load_average = std::fs::read_to_string("/proc/loadavg").ok();
    let load_average: Option<f64> = load_average.and_then(|text| text.split(' ').next()?.parse().ok());
    json!({
        "cpu": cpu,
        "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        "load_average_before": load_average,
        "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// The commit of the repository; `-changed` where the sources differ from it.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "--", ".."]).is_none_or(|changes| !changes.is_empty());
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    if changed { commit + "-changed" } else { commit }
}

/// The versions of packages that this build was locked to.
pub(crate) fn versions(packages: &[&str]) -> Value {
    let lock = include_str!("../../../Cargo.lock");
    let versions = packages.iter().filter_map(|package| {
        let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{package}\"\n")))?;
        let version = entry.lines().find_map(|line| line.strip_prefix("version = "))?;
        Some(((*package).to_owned(), Value::from(version.trim_matches('"'))))
    });
    Value::Object(versions.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    #[test]
    fn locked_versions_are_found() {
        let versions = super::versions(&["fsst-rs", "no-such-package"]);
        assert!(versions["fsst-rs"].as_str().is_some_and(|version| version.starts_with("0.")), "{versions}");
        assert!(versions.get("no-such-package").is_none());
    }
}
