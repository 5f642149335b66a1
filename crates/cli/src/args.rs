//! What the user typed after `sinter`.

use crate::failure::{self, Failure};
use crate::output::Mode;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use sinterdb::{Config, OnCorruption, Synchronous};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// An embedded database that keeps everything compressed.
///
/// Without FILE the database is in memory. Without -c, statements come from standard input: interactively on a terminal,
/// as a script otherwise.
#[derive(Debug, Parser)]
#[command(name = "sinter", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The database; created if absent.
    file: Option<PathBuf>,

    /// Run these statements and exit; may be given several times.
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    pub(crate) statements: Vec<String>,

    #[command(flatten)]
    pub(crate) format: Format,

    /// Show no progress bars.
    #[arg(long)]
    pub(crate) no_progress: bool,

    /// Print after each statement how long it took.
    #[arg(long)]
    pub(crate) timer: bool,

    #[command(flatten)]
    pub(crate) engine: Engine,
}

impl Args {
    /// FILE.
    ///
    /// # Errors
    /// Where it is the name of a command: after an option clap takes `demo` for a file, and it would be created.
    pub(crate) fn file(&self) -> failure::Result<Option<&Path>> {
        let Some(file) = self.file.as_deref() else { return Ok(None) };
        let names = |name: &str| file.as_os_str() == OsStr::new(name);
        if let Some(name) = LATER.into_iter().find(|name| names(name)) {
            return Err(not_yet(name));
        }
        if names("help") || Args::command().get_subcommands().any(|command| names(command.get_name())) {
            let name = file.display();
            return Err(Failure::Usage(format!(
                "'{name}' is a command and stands before all options; a database file of that name is opened by its \
                 path: sinter ./{name}"
            )));
        }
        Ok(Some(file))
    }
}

/// How results are written. Without one of these: a table.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Format {
    /// Results as comma-separated values (RFC 4180): NULL is empty, an empty string is "".
    #[arg(long)]
    csv: bool,
    /// Results as a JSON array of objects.
    #[arg(long)]
    json: bool,
    /// Results as Markdown tables.
    #[arg(long)]
    markdown: bool,
    /// Results as one `column = value` per line.
    #[arg(long)]
    line: bool,
    /// Results as tables with all rows and columns, whatever the terminal's width.
    #[arg(long = "box")]
    full: bool,
}

impl Format {
    /// The chosen mode.
    pub(crate) fn mode(self) -> Mode {
        match self {
            Format { csv: true, .. } => Mode::Csv,
            Format { json: true, .. } => Mode::Json,
            Format { markdown: true, .. } => Mode::Markdown,
            Format { line: true, .. } => Mode::Line,
            Format { full: true, .. } => Mode::Box,
            _ => Mode::Table,
        }
    }
}

/// How the database is opened.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Engine {
    /// Memory for cached pages and running queries, such as 512MB or 4GB.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory_limit: Option<u64>,

    /// Threads per query, 1024 at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Refuse every change; never create the file.
    #[arg(long, alias = "read-only")]
    readonly: bool,

    /// When a commit counts as durable.
    #[arg(long, value_enum, value_name = "MODE", default_value = "full")]
    synchronous: SynchronousMode,

    /// What becomes of damaged rows; `skip` also opens what is left of a database of which tables are lost.
    #[arg(long, value_enum, value_name = "MODE", default_value = "error")]
    on_corruption: OnCorruptionMode,
}

/// [`OnCorruption`], as clap knows it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnCorruptionMode {
    /// Statements that need them end with an error.
    Error,
    /// Queries leave them out and say how many.
    Skip,
}

/// [`Synchronous`], as clap knows it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SynchronousMode {
    /// Synced to the disk before it returns.
    Full,
    /// Synced in the background: a power cut may lose the last moments, never part of a commit.
    Normal,
    /// Not synced before the database is closed.
    Off,
}

impl Engine {
    /// The options as the database takes them.
    pub(crate) fn config(&self) -> Config {
        let mut config =
            Config::builder().read_only(self.readonly).create(!self.readonly).synchronous(match self.synchronous {
                SynchronousMode::Full => Synchronous::Full,
                SynchronousMode::Normal => Synchronous::Normal,
                SynchronousMode::Off => Synchronous::Off,
            });
        config = config.on_corruption(match self.on_corruption {
            OnCorruptionMode::Error => OnCorruption::Error,
            OnCorruptionMode::Skip => OnCorruption::Skip,
        });
        if let Some(bytes) = self.memory_limit {
            config = config.memory_limit_bytes(bytes);
        }
        if let Some(threads) = self.threads {
            config = config.threads(threads.into());
        }
        config
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Press real data, show what each column costs, and query it: the main job in one command.
    Demo(DemoArgs),
    /// List the compression schemes.
    Codecs {
        /// What each answers without decoding, and how much faster that is, measured now: some seconds.
        #[arg(long)]
        kernels: bool,
        /// What it costs to decode each, as the planner has it and as measured now.
        #[arg(long, conflicts_with = "kernels")]
        decoding: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Measure, against other engines too. Not there yet.
    #[command(hide = true, disable_help_flag = true)]
    Bench(Later),
    /// Verify every byte of a database that nobody writes, and say what is damaged and what is lost by it.
    ///
    /// Exit code 0: nothing is damaged; 1: something is; 2: it could not be looked at.
    Check(LookArgs),
    /// Show headers, logs, space and pages of a database that nobody writes, and what each column costs.
    Inspect(LookArgs),
    /// Let other processes use a database. Not there yet.
    #[command(hide = true, disable_help_flag = true)]
    Serve(Later),
}

/// Commands that a later version will have. Their names are kept free: a script that uses one too early is told so,
/// instead of finding itself in a new database of that name.
const LATER: [&str; 2] = ["bench", "serve"];

/// What stands behind the name of a command that is not there yet; anything goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Later {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    _arguments: Vec<OsString>,
}

/// The answer to one of [`LATER`].
pub(crate) fn not_yet(name: &str) -> Failure {
    Failure::Usage(format!(
        "'sinter {name}' is not there yet in version {}; a database file of that name is opened by its path: \
         sinter ./{name}",
        env!("CARGO_PKG_VERSION")
    ))
}

/// Options of `sinter check` and `sinter inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct LookArgs {
    /// The database.
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) format: Format,

    /// Show no progress bars.
    #[arg(long)]
    pub(crate) no_progress: bool,
}

/// Options of `sinter demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Scale factor of the TPC-H data; 1 is about 1 GB as text.
    #[arg(long, value_name = "FACTOR", default_value = "0.1", value_parser = parse_scale)]
    pub(crate) sf: f64,

    /// Keep the database in this directory, as demo.sinter; otherwise it is gone afterwards.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Show no progress bars.
    #[arg(long)]
    pub(crate) no_progress: bool,

    /// Memory for cached pages and running queries, such as 512MB or 4GB.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory_limit: Option<u64>,

    /// Threads per query, 1024 at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.001..=1000.0).contains(&scale) => Ok(scale),
        _ => Err("expected a number from 0.001 to 1000".into()),
    }
}

/// `4GB` is 4 * 10^9 bytes, `4GiB` is 4 * 2^30; without a unit, bytes.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit_start = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("unknown unit {unit:?}; expected KB, MB, GB, TB, KiB, MiB, GiB or TiB")),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number * factor >= 1.0 => Ok((number * factor) as u64),
        _ => Err("expected a size such as 512MB or 4GB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_bytes("4GB"), Ok(4_000_000_000));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert!(parse_bytes("GB").is_err() && parse_bytes("4 apples").is_err() && parse_bytes("-1GB").is_err());
    }

    #[test]
    fn one_format_at_a_time() {
        assert!(Args::try_parse_from(["sinter", "--csv", "--json"]).is_err());
        assert_eq!(Args::try_parse_from(["sinter", "x", "--line"]).unwrap().format.mode(), Mode::Line);
    }

    #[test]
    fn subcommands_stand_before_files() {
        assert!(Args::try_parse_from(["sinter", "demo"]).unwrap().command.is_some());
        assert!(Args::try_parse_from(["sinter", "./demo"]).unwrap().command.is_none());
    }

    #[test]
    fn names_of_commands_are_no_files() {
        for name in LATER {
            assert!(Args::try_parse_from(["sinter", name]).unwrap().command.is_some(), "{name}");
            assert!(Args::command().find_subcommand(name).is_some_and(clap::Command::is_hide_set), "{name}");
        }
        for name in LATER.into_iter().chain(["demo", "codecs", "check", "inspect", "help"]) {
            let args = Args::try_parse_from(["sinter", "--csv", name]).unwrap();
            assert!(matches!(args.file(), Err(Failure::Usage(_))), "{name}");
            let path = format!("./{name}");
            assert_eq!(Args::try_parse_from(["sinter", &path]).unwrap().file().unwrap(), Some(Path::new(&path)));
        }
    }
}
