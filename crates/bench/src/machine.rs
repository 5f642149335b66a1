//! Where and with what a benchmark ran.

use arrow::temporal_conversions::timestamp_s_to_datetime;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// What a record has for a path outside of the repository: the folders of a machine tell nobody anything.
const ELSEWHERE: &str = "PATH";

/// How the process was called, and when.
pub struct Invocation {
    date: String,
    command: String,
}

impl Invocation {
    /// Now, with these arguments; the first is the program's path.
    pub fn now(arguments: impl IntoIterator<Item = String>) -> Invocation {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = timestamp_s_to_datetime(since_1970.as_secs() as i64);
        let date = now.map_or_else(String::new, |now| now.format("%Y-%m-%d %H:%M UTC").to_string());
        let mut command = "sinter-bench".to_owned();
        for argument in arguments.into_iter().skip(1) {
            let (option, value) = argument.split_at(argument.find('=').map_or(0, |equals| equals + 1));
            let value = if value.contains('/') { shown(Path::new(value)) } else { value.to_owned() };
            command = format!("{command} {option}{value}");
        }
        Invocation { date, command }
    }

    /// A record that begins with it.
    pub fn of(&self, record: Value) -> Value {
        let mut whole = json!({ "command": self.command, "date": self.date });
        if let (Value::Object(whole), Value::Object(record)) = (&mut whole, record) {
            whole.extend(record);
        }
        whole
    }
}

/// A path as it is within the repository, or that it is elsewhere.
pub(crate) fn shown(path: &Path) -> String {
    let root = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let repository = root(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let path = std::path::absolute(path).map_or_else(|_| path.to_path_buf(), root);
    path.strip_prefix(repository).map_or_else(|_| ELSEWHERE.to_owned(), |inside| inside.display().to_string())
}

/// The processor, its threads, the instructions that our kernels take, the system, and what else is going on: to be asked before the measurement.
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
        "isa": sinter_codec::isa().name(),
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
    use super::Invocation;
    use serde_json::json;

    #[test]
    fn a_record_begins_with_a_command_that_names_no_local_folder() {
        let inside = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned();
        let arguments = ["/somewhere/sinter-bench", "stalls", "--data=/somewhere/else", "--clients", "8", "--out"];
        let arguments = arguments.map(str::to_owned).into_iter().chain([inside]);
        let record = Invocation::now(arguments).of(json!({ "suite": "stalls" }));
        assert_eq!(record["command"], "sinter-bench stalls --data=PATH --clients 8 --out crates/bench/Cargo.toml");
        assert!(record["date"].as_str().is_some_and(|date| date.len() == 20 && date.ends_with(" UTC")), "{record}");
        assert_eq!(record["suite"], "stalls");
    }

    #[test]
    fn locked_versions_are_found() {
        let versions = super::versions(&["fsst-rs", "no-such-package"]);
        assert!(versions["fsst-rs"].as_str().is_some_and(|version| version.starts_with("0.")), "{versions}");
        assert!(versions.get("no-such-package").is_none());
    }
}
