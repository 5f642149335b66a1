//! The scripts in `tests/slt`, which anyone can extend without compiling anything.
//!
//! Each runs in combinations of where the database lives, which engine runs it, and how many threads do; in half of them, so
//! that any two of these meet in each script, and all three of them in it or the next:
//!
//! - in memory;
//! - in a file that is closed and opened again every few statements;
//! - in a file that is copied every few statements, together with its log, and goes on from the copy, as after a crash.
//!
//! And in memory with vectors of three rows, so that whatever goes from one vector to the next does so all the time; with operators
//! that spill whatever they can; and in a file with each compression scheme forced on all columns that it can hold, with either
//! engine, one thread or two, and vectors and operators as above: some schemes for each script, each with another one of these,
//! or with `SINTER_EVERY_SCHEME=1` (scripts/try-every-scheme) all schemes for each script, each with another one of these, and
//! all of the above; with `SINTER_EVERY_SCHEME=all` each scheme with each of these. What a script asks
//! about the choice of schemes has `skipif forced`.
//!
//! The answers may not depend on any of it, but where something is an error that need not be one: of that, DataFusion has
//! more (`skipif datafusion`).

use crate::answers::rows_of;
use sinter_codec::SCHEMES;
use sinterdb::{Config, Connection, Database, Error, Outcome};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Statements between two openings. Two primes, so that openings fall on different statements of a script.
const STATEMENTS_PER_CLOSING: usize = 5;
const STATEMENTS_PER_CRASH: usize = 7;

/// Every so many-th scheme is forced in the run of a script.
const SCHEME_TURNS: usize = 7;

/// What a forced scheme is crossed with.
const BESIDE_SCHEME: [(&str, usize, Operators); 7] = [
    ("auto", 2, Operators::Usual),
    ("auto", 1, Operators::TinyVectors),
    ("datafusion", 2, Operators::Usual),
    ("auto", 2, Operators::Spilling),
    ("auto", 1, Operators::Usual),
    ("auto", 2, Operators::TinyVectors),
    ("datafusion", 1, Operators::TinyVectors),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Memory,
    ClosedFile,
    CrashedFile,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    place: Place,
    engine: &'static str,
    threads: usize,
    /// Forced on all columns that it can hold.
    scheme: Option<&'static str>,
    /// In which way operators work.
    operators: Operators,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operators {
    Usual,
    TinyVectors,
    Spilling,
}

impl Operators {
    fn setting(self) -> Option<&'static str> {
        match self {
            Operators::Usual => None,
            Operators::TinyVectors => Some("SET sinter.vector_rows = 3"),
            Operators::Spilling => Some("SET sinter.operator_memory = '1B'"),
        }
    }
}

impl Setting {
    /// Those for a script, by its place in the list.
    fn all(script: usize) -> Vec<Setting> {
        let asked = std::env::var("SINTER_EVERY_SCHEME").ok();
        Setting::of_script(script, asked.is_some(), asked.as_deref() == Some("all"))
    }

    /// Those for a script; with `every` all schemes, if `crossed` each of them with everything beside it.
    fn of_script(script: usize, every: bool, crossed: bool) -> Vec<Setting> {
        let mut all = Vec::new();
        for (turn, place) in [Place::Memory, Place::ClosedFile, Place::CrashedFile].into_iter().enumerate() {
            for (engine_turn, engine) in ["auto", "datafusion"].into_iter().enumerate() {
                for threads in [1, 2] {
                    if every || (turn + engine_turn + threads + script).is_multiple_of(2) {
                        all.push(Setting { place, engine, threads, scheme: None, operators: Operators::Usual });
                    }
                }
            }
        }
        let (place, engine, threads) = (Place::Memory, "auto", 2);
        let others = [Operators::TinyVectors, Operators::Spilling];
        all.extend(others.map(|operators| Setting { place, engine, threads, scheme: None, operators }));
        for (number, entry) in SCHEMES.iter().enumerate() {
            for (beside, &(engine, threads, operators)) in BESIDE_SCHEME.iter().enumerate() {
                let is_due = match every {
                    // From script to script another one.
                    true => (number + script) % BESIDE_SCHEME.len() == beside,
                    false => {
                        (number + script).is_multiple_of(SCHEME_TURNS)
                            && (number / SCHEME_TURNS + script / SCHEME_TURNS) % BESIDE_SCHEME.len() == beside
                    }
                };
                if crossed || is_due {
                    // A file is pressed whenever it is closed.
                    let (place, scheme) = (Place::ClosedFile, Some(entry.name));
                    all.push(Setting { place, engine, threads, scheme, operators });
                }
            }
        }
        all
    }
}

/// A database that a script runs against, and that is opened anew under its feet.
struct Scripted {
    setting: Setting,
    directory: TempDir,
    open: Option<(Database, Connection)>,
    statement_count: usize,
    copy_count: usize,
}

impl Scripted {
    fn new(setting: Setting) -> Result<Scripted, Error> {
        let directory = tempfile::tempdir().expect("a directory for the database");
        let mut scripted = Scripted { setting, directory, open: None, statement_count: 0, copy_count: 0 };
        scripted.open = Some(scripted.opened()?);
        Ok(scripted)
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join(self.copy_count.to_string()).join("script.sinter")
    }

    fn opened(&self) -> Result<(Database, Connection), Error> {
        // Where the files are copied as a crash would leave them, nothing may go on beside the statements.
        let background = !matches!(self.setting.place, Place::CrashedFile);
        let config = Config::builder().threads(self.setting.threads).memory_limit_bytes(1 << 30).background(background);
        let database = match self.setting.place {
            Place::Memory => Database::memory_with(config)?,
            Place::ClosedFile | Place::CrashedFile => {
                std::fs::create_dir_all(self.file().parent().unwrap()).unwrap();
                Database::open_with(self.file(), config)?
            }
        };
        let conn = database.connect();
        conn.execute(&format!("SET sinter.engine = '{}'", self.setting.engine), &[])?;
        if let Some(setting) = self.setting.operators.setting() {
            conn.execute(setting, &[])?;
        }
        if let Some(scheme) = self.setting.scheme {
            conn.execute(&format!("SET sinter.compression = '{scheme}'"), &[])?;
        }
        Ok((database, conn))
    }

    fn open_anew_when_due(&mut self) -> Result<(), Error> {
        self.statement_count += 1;
        if self.open.as_ref().is_some_and(|(_, conn)| conn.in_transaction()) {
            return Ok(());
        }
        match self.setting.place {
            Place::ClosedFile if self.statement_count.is_multiple_of(STATEMENTS_PER_CLOSING) => {
                if let Some((database, _)) = self.open.take() {
                    database.close()?;
                }
                self.open = Some(self.opened()?);
            }
            Place::CrashedFile if self.statement_count.is_multiple_of(STATEMENTS_PER_CRASH) => {
                let from = self.file();
                self.copy_count += 1;
                let to = self.file();
                copy_files(from.parent().unwrap(), to.parent().unwrap());
                let copied = self.opened()?;
                self.open = Some(copied);
            }
            _ => {}
        }
        Ok(())
    }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

impl DB for Scripted {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        // The runner calls from within an executor of futures, in which no other may run.
        std::thread::scope(|scope| scope.spawn(|| self.run_here(sql)).join().unwrap_or_else(|_| Err(panicked())))
    }
}

fn panicked() -> Error {
    Error::Internal("the statement panicked".to_owned())
}

impl Scripted {
    fn run_here(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let (_, conn) = self.open.as_ref().expect("open until the script ends");
        let statements = conn.statements(sql)?;
        let [statement] = &statements[..] else {
            return Err(Error::Sql(format!("one statement is wanted, here are {}", statements.len())));
        };
        let output = match conn.run(statement, &[])? {
            Outcome::Done { rows, .. } => DBOutput::StatementComplete(rows.unwrap_or(0)),
            Outcome::Rows(query) => {
                let types = vec![DefaultColumnType::Any; query.schema().fields().len()];
                DBOutput::Rows { types, rows: query.collect()?.iter().flat_map(rows_of).collect() }
            }
        };
        self.open_anew_when_due()?;
        Ok(output)
    }
}

/// Runs one script in all settings.
fn run(name: &str) {
    let number = SCRIPTS.iter().position(|script| *script == name).expect("it is in the list");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt").join(name);
    for setting in Setting::all(number) {
        let mut runner = Runner::new(|| async move { Scripted::new(setting) });
        if setting.scheme.is_some() {
            runner.add_label("forced");
        }
        if setting.engine == "datafusion" {
            runner.add_label("datafusion");
        }
        if let Err(error) = runner.run_file(&script) {
            panic!("{name}, {setting:?}:\n{}", error.display(false));
        }
    }
}

macro_rules! scripts {
    ($($name:ident)*) => {
        const SCRIPTS: &[&str] = &[$(concat!(stringify!($name), ".slt")),*];

        $(#[test]
        fn $name() {
            run(concat!(stringify!($name), ".slt"));
        })*

    };
}

#[test]
fn every_scheme_is_forced_beside_either_engine_tiny_vectors_and_spilling() {
    let settings: Vec<Setting> = (0..SCRIPTS.len()).flat_map(Setting::all).collect();
    for entry in SCHEMES {
        let forced: Vec<&Setting> = settings.iter().filter(|setting| setting.scheme == Some(entry.name)).collect();
        for engine in ["auto", "datafusion"] {
            assert!(forced.iter().any(|setting| setting.engine == engine), "{} beside {engine}", entry.name);
        }
        for operators in [Operators::Usual, Operators::TinyVectors, Operators::Spilling] {
            let is_beside = |setting: &&&Setting| setting.engine == "auto" && setting.operators == operators;
            assert!(forced.iter().any(|setting| is_beside(&setting)), "{} beside {operators:?}", entry.name);
        }
    }
}

#[test]
fn where_every_scheme_is_tried_each_meets_everything_from_script_to_script() {
    let mut met = BTreeSet::new();
    for (script, name) in SCRIPTS.iter().enumerate() {
        let forced = Setting::of_script(script, true, false).into_iter().filter_map(|setting| {
            met.insert((setting.scheme?, format!("{}, {}, {:?}", setting.engine, setting.threads, setting.operators)));
            setting.scheme
        });
        assert_eq!(forced.count(), SCHEMES.len(), "{name}");
    }
    assert_eq!(met.len(), SCHEMES.len() * BESIDE_SCHEME.len());
    assert!(Setting::of_script(0, true, true).len() > Setting::of_script(0, true, false).len());
}

#[test]
fn every_script_is_in_the_list() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".slt") || SCRIPTS.contains(&name.as_str()), "{name} is not listed");
    }
}

scripts! {
    aggregates
    aggregates_of_no_row
    alter_table
    any_all
    candidates
    checks
    conditions
    create_drop
    dates
    decimal_casts
    decimals
    delete_update
    dependent_joins
    errors
    far_times
    filters
    first_rows_of_joins
    floats
    forced_schemes
    grouping_sets
    groups
    groups_of_partners
    indexes
    insert
    intervals
    is_distinct_from
    joins
    joins_groups
    marks
    merge
    names_and_types
    natural_joins
    nulls
    order_by
    overflow
    other_aggregates
    quantise
    regular_expressions
    repeated_names
    rows
    schemas
    set_operations
    spill_compression
    stale_traps
    subqueries
    subqueries_over_joins
    subquery_values
    text_functions
    text_functions_of_rows
    transactions
    trees
    types
    unnest
    upserts
    using_joins
    views
    window_frames
    windows
}
