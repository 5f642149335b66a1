//! Where, when and with what a benchmark ran.

use serde_json::{Value, json};
use std::process::Command;

/// What begins every record. To be asked before the measurement: it tells what else was going on.
pub fn describe() -> Value {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    let load: Option<f64> = load.and_then(|text| text.split(' ').next()?.parse().ok());
    json!({
        "command": command(std::env::args().skip(1)),
        "date": output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        "commit": commit(),
        "cpu": cpu,
        "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        "isa": sinter_codec::isa().name(),
        "load_average_before": load,
        "rustc": output("rustc", &["--version"]),
        "versions": versions(),
    })
}

/// The call, without the folders of this machine: they tell nobody anything.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let shown = |argument: String| {
        let (option, value) = argument.split_at(argument.find('=').map_or(0, |equals| equals + 1));
        let file = value.rsplit('/').next().unwrap_or(value);
        format!(" {option}{file}")
    };
    "scripts/benchmark-codecs".to_owned() + &arguments.map(shown).collect::<String>()
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The commit of the repository; `-changed` where our sources differ from it.
fn commit() -> String {
    let changes = output("git", &["status", "--porcelain", "--", ".", "../../crates/codec"]);
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    if changes.is_none_or(|changes| !changes.is_empty()) { commit + "-changed" } else { commit }
}

/// The versions of peers that this build was locked to.
fn versions() -> Value {
    const PEERS: [&str; 10] = [
        "bitpacking",
        "fastlanes",
        "fsst-rs",
        "lz4_flex",
        "lzokay",
        "pco",
        "streamvbyte64",
        "tpchgen",
        "zstd",
        "zstd-sys",
    ];
    let lock = include_str!("../Cargo.lock");
    let version = |peer: &str| {
        let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{peer}\"\n")))?;
        let version = entry.lines().find_map(|line| line.strip_prefix("version = "))?;
        Some(version.trim_matches('"').to_owned())
    };
    PEERS.iter().map(|peer| ((*peer).to_owned(), json!(version(peer)))).collect()
}

#[cfg(test)]
mod tests {
    use super::{command, versions};

    #[test]
    fn a_command_names_no_folder_of_the_machine() {
        let arguments = ["schemes", "--out", "/somewhere/else.json", "--data=/somewhere/data"].map(str::to_owned);
        let shown = command(arguments.into_iter());
        assert_eq!(shown, "scripts/benchmark-codecs schemes --out else.json --data=data");
    }

    #[test]
    fn every_peer_is_locked() {
        assert!(versions().as_object().is_some_and(|peers| peers.values().all(|version| version.is_string())));
    }
}
