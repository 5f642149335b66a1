//! A database's life, from an opening to its close: random statements on several connections, each compared with the
//! model, over a disk that records what is done to it.

use super::action::{Action, BULK_ROWS_MIN, Refused};
use super::beside::{Beside, Interruption};
use super::compare::{Seen, compare};
use super::generator::Generator;
use super::model::{Name, State};
use super::story::{Content, Mark, Story, Tally, text};
use rand::Rng;
use rand::rngs::SmallRng;
use sinter_storage::Synchronous;
use sinter_storage::testing::CrashingFileSystem;
use sinterdb::{Config, Connection, Database, Error};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Where the database is, in the simulated file system.
const PATH: &str = "/simulated/shop.sinter";

/// Two that change things, and one that looks at old states.
const CONNECTIONS: usize = 3;
const READER: usize = 2;

/// What goes wrong, and where.
pub(super) type Outcome<T> = Result<T, String>;

/// What kind of life it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) level: Synchronous,
    pub(super) steps: u32,
    /// Very large INSERTs at most.
    pub(super) large: u32,
}

/// A transaction under way.
#[derive(Debug)]
struct Running {
    is_read_only: bool,
    /// What it sees: the state at its beginning, with its own changes.
    view: State,
    begun: usize,
    /// How many had committed when it began.
    commits_before: usize,
    /// What it did, and how many rows that changed.
    actions: Vec<(Action, u64)>,
    savepoints: Vec<(String, State, usize)>,
    has_failed: bool,
    steps_left: u32,
}

/// A database in use. Locked only between statements: during a checkpoint, statements run within one another.
struct World {
    plan: Plan,
    generator: Generator,
    database: Option<Database>,
    connections: Vec<Connection>,
    running: [Option<Running>; CONNECTIONS],
    states: Vec<Arc<State>>,
    /// Commits that did something, even where the state looks the same after it: they may be conflicts for others.
    commits: usize,
    marks: Vec<Mark>,
    level: Synchronous,
    pressed: BTreeSet<Name>,
    marked: BTreeSet<Name>,
    in_checkpoint: bool,
    tally: Tally,
    failure: Option<String>,
}

/// The world and the disk that it is on.
struct Living {
    disk: CrashingFileSystem,
    beside: Arc<Beside>,
    world: Mutex<World>,
}

/// Opens a database on a disk.
pub(super) fn open(file_system: Arc<dyn sinter_storage::FileSystem>, level: Synchronous) -> Result<Database, Error> {
    let config = Config::builder()
        .threads(1)
        .memory_limit_bytes(256 << 20)
        .background(false)
        .synchronous(level)
        .file_system(file_system);
    Database::open_with(PATH, config)
}

/// Lives on a disk that holds one of these states. Compares first; ends with a close.
///
/// # Errors
/// What is not as it should be.
pub(super) fn live(disk: &CrashingFileSystem, allowed: &[Arc<State>], plan: Plan, csv: &Path) -> Outcome<Story> {
    let disk = disk.recorded();
    let beside = Arc::new(Beside::new(disk.clone()));
    let database = open(beside.clone(), plan.level).map_err(|error| format!("it does not open: {error}"))?;
    let seen = Seen::new(database.connect());
    let same = compare(&seen, allowed, true)?;
    let state = &allowed[same[0]];
    // Which rules a table has cannot be seen. Where that is in doubt, nothing is tried that depends on it.
    let is_in_doubt = same.iter().any(|index| allowed[*index] != *state);
    let steps = if is_in_doubt { 0 } else { plan.steps };
    let world = World {
        plan,
        generator: Generator::new(plan.seed, csv, plan.large),
        connections: (0..CONNECTIONS).map(|_| database.connect()).collect(),
        database: Some(database),
        running: Default::default(),
        states: vec![Arc::clone(state)],
        commits: 0,
        marks: Vec::new(),
        level: plan.level,
        pressed: BTreeSet::new(),
        marked: BTreeSet::new(),
        in_checkpoint: false,
        tally: Tally::default(),
        failure: None,
    };
    let living = Arc::new(Living { disk, beside, world: Mutex::new(world) });
    living.mark("OPEN", String::new(), 0, None, false);
    let lived = (0..steps).try_for_each(|_| living.step()).and_then(|()| living.close());
    lived.map_err(|failure| format!("{}{failure}", text(&living.world().marks)))?;
    let mut world = living.world();
    let (marks, states) = (std::mem::take(&mut world.marks), std::mem::take(&mut world.states));
    Ok(Story { recording: living.disk.recording(), marks, states, tally: world.tally, is_in_doubt })
}

impl World {
    fn random(&mut self) -> &mut SmallRng {
        &mut self.generator.random
    }

    fn now(&self) -> Arc<State> {
        self.states.last().cloned().unwrap_or_default()
    }

    /// What a connection sees.
    fn view(&self, connection: usize) -> State {
        match &self.running[connection] {
            Some(running) => running.view.clone(),
            None => (*self.now()).clone(),
        }
    }

    /// What is known of the form of the rows, after a statement that was committed.
    fn note_form(&mut self, action: &Action, rows: u64) {
        let Some(name) = action.table().cloned() else { return };
        match action {
            Action::DropTable { .. } | Action::RenameTable { .. } | Action::CreateTable { .. } => {
                self.pressed.remove(&name);
                self.marked.remove(&name);
            }
            Action::Delete { .. } | Action::Update { .. } if rows > 0 && self.pressed.contains(&name) => {
                self.marked.insert(name);
            }
            Action::InsertSelect { .. } | Action::CreateTableAs { .. } | Action::Copy { .. }
                if rows >= BULK_ROWS_MIN as u64 =>
            {
                self.pressed.insert(name);
            }
            _ => {}
        }
    }

    fn content(&self) -> Content {
        let is_old = |running: &Running| running.begun + 1 < self.states.len();
        Content {
            pressed_groups: !self.pressed.is_empty(),
            delete_marks: !self.marked.is_empty(),
            old_snapshot: self.running[READER].as_ref().is_some_and(is_old),
            checkpoint: self.in_checkpoint,
        }
    }
}

impl Living {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn calls(&self) -> usize {
        self.disk.calls().len()
    }

    fn mark(&self, kind: &'static str, sql: String, begun: usize, state: Option<usize>, is_clean: bool) {
        let calls = begun..self.calls();
        let mut world = self.world();
        let (level, content) = (world.level, world.content());
        world.tally.statements += 1;
        world.marks.push(Mark { kind, sql, calls, state, level, is_clean, content });
    }

    fn step(self: &Arc<Self>) -> Outcome<()> {
        let (connection, drawn) = {
            let mut world = self.world();
            (world.random().random_range(0..CONNECTIONS), world.random().random_range(0..100))
        };
        match drawn {
            0..6 => self.checkpoint("CHECKPOINT")?,
            6..8 => self.checkpoint("VACUUM")?,
            8..11 => self.set_level()?,
            11..14 => self.reopen()?,
            _ => self.step_of(connection)?,
        }
        match self.world().failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// What can happen at any time, also during a checkpoint.
    fn step_of(&self, connection: usize) -> Outcome<()> {
        let (is_running, drawn) = {
            let mut world = self.world();
            let is_over = match &mut world.running[connection] {
                Some(running) => {
                    running.steps_left = running.steps_left.saturating_sub(1);
                    running.steps_left == 0
                }
                None => false,
            };
            let drawn = world.random().random_range(0..20);
            (world.running[connection].is_some().then_some(is_over), drawn)
        };
        match (is_running, drawn) {
            (None, _) if connection == READER => self.begin(connection, true),
            (Some(false), _) if connection == READER => self.read(connection),
            (None, 0..4) => self.begin(connection, false),
            (None, 4) | (Some(false), 0..2) => self.read(connection),
            (Some(true), 0..16) => self.commit(connection),
            (Some(true), _) => self.roll_back(connection),
            (Some(false), 2..4) => self.savepoint(connection),
            (Some(false), 4) => self.release(connection),
            (Some(false), 5..7) => self.roll_back_to(connection),
            _ => self.change(connection, Generator::action),
        }
    }

    /// Runs a statement that makes no difference to the model; returns where its calls began.
    fn execute(&self, connection: usize, sql: &str) -> Result<usize, Error> {
        let conn = self.world().connections[connection].clone();
        let begun = self.calls();
        conn.execute(sql, &[]).map(|_| begun)
    }

    fn run(&self, connection: usize, kind: &'static str, sql: &str, is_clean: bool) -> Outcome<()> {
        let begun = self.execute(connection, sql).map_err(|error| format!("{sql}: {error}"))?;
        self.mark(kind, sql.to_owned(), begun, None, is_clean);
        Ok(())
    }

    fn change(&self, connection: usize, draw: fn(&mut Generator, &State) -> Action) -> Outcome<()> {
        let (action, mut view, has_failed) = {
            let mut world = self.world();
            let view = world.view(connection);
            let action = draw(&mut world.generator, &view);
            let has_failed = world.running[connection].as_ref().is_some_and(|running| running.has_failed);
            (action, view, has_failed)
        };
        action.prepare();
        let sql = action.sql();
        let conn = self.world().connections[connection].clone();
        let begun = self.calls();
        let outcome = conn.execute(&sql, &[]);
        let expected = if has_failed { Err(Refused) } else { action.run_on(&mut view) };
        let mut world = self.world();
        let mut state = None;
        let mut kind = action.kind();
        match (outcome, expected) {
            (Ok(rows), Ok(expected)) if rows == expected => {
                if let Some(running) = &mut world.running[connection] {
                    running.view = view;
                    running.actions.push((action, rows));
                } else {
                    world.states.push(Arc::new(view));
                    state = Some(world.states.len() - 1);
                    world.commits += 1;
                    world.tally.commits += 1;
                    world.note_form(&action, rows);
                }
            }
            (Err(error @ (Error::Sql(_) | Error::Data(_))), Err(Refused)) => {
                kind = "refused";
                world.tally.refused += 1;
                if let Some(running) = &mut world.running[connection] {
                    running.has_failed |= !matches!(error, Error::Sql(_));
                }
            }
            (outcome, expected) => return Err(format!("{sql}: {outcome:?}, where the model says {expected:?}")),
        }
        drop(world);
        self.mark(kind, sql, begun, state, false);
        Ok(())
    }

    fn begin(&self, connection: usize, is_read_only: bool) -> Outcome<()> {
        self.run(connection, "BEGIN", if is_read_only { "BEGIN READ ONLY" } else { "BEGIN" }, false)?;
        let mut world = self.world();
        let steps_left = world.random().random_range(2..if is_read_only { 12 } else { 9 });
        let view = (*world.now()).clone();
        let (begun, commits_before) = (world.states.len() - 1, world.commits);
        world.running[connection] = Some(Running {
            is_read_only,
            view,
            begun,
            commits_before,
            actions: Vec::new(),
            savepoints: Vec::new(),
            has_failed: false,
            steps_left,
        });
        Ok(())
    }

    /// Compares all that a connection sees.
    fn read(&self, connection: usize) -> Outcome<()> {
        let (conn, view, has_failed) = {
            let mut world = self.world();
            world.tally.reads += 1;
            let has_failed = world.running[connection].as_ref().is_some_and(|running| running.has_failed);
            (world.connections[connection].clone(), world.view(connection), has_failed)
        };
        if has_failed {
            return match conn.sql("SELECT 1") {
                Ok(_) => Err("a transaction that failed answers a query".to_owned()),
                Err(_) => Ok(()),
            };
        }
        compare(&Seen::new(conn), &[Arc::new(view)], true).map(drop)
    }

    fn savepoint(&self, connection: usize) -> Outcome<()> {
        let name = {
            let mut world = self.world();
            let drawn = world.random().random_range(0..3);
            match &world.running[connection] {
                Some(running) if !running.has_failed => format!("p{drawn}"),
                _ => return Ok(()),
            }
        };
        self.run(connection, "SAVEPOINT", &format!("SAVEPOINT {name}"), false)?;
        if let Some(running) = &mut self.world().running[connection] {
            running.savepoints.push((name, running.view.clone(), running.actions.len()));
        }
        Ok(())
    }

    fn release(&self, connection: usize) -> Outcome<()> {
        let name = match &self.world().running[connection] {
            Some(running) if !running.has_failed => running.savepoints.last().map(|(name, ..)| name.clone()),
            _ => None,
        };
        let Some(name) = name else { return Ok(()) };
        self.run(connection, "RELEASE", &format!("RELEASE SAVEPOINT {name}"), false)?;
        if let Some(running) = &mut self.world().running[connection] {
            running.savepoints.pop();
        }
        Ok(())
    }

    fn roll_back_to(&self, connection: usize) -> Outcome<()> {
        let name = {
            let mut world = self.world();
            let drawn: usize = world.random().random_range(0..8);
            let running = world.running[connection].as_ref();
            let savepoints = running.map(|running| &running.savepoints).filter(|savepoints| !savepoints.is_empty());
            savepoints.map(|savepoints| savepoints[drawn % savepoints.len()].0.clone())
        };
        let Some(name) = name else { return Ok(()) };
        self.run(connection, "ROLLBACK TO", &format!("ROLLBACK TO {name}"), false)?;
        if let Some(running) = &mut self.world().running[connection]
            && let Some(index) = running.savepoints.iter().rposition(|(known, ..)| *known == name)
        {
            running.savepoints.truncate(index + 1);
            let (_, view, actions) = &running.savepoints[index];
            running.view.clone_from(view);
            running.actions.truncate(*actions);
            running.has_failed = false;
        }
        Ok(())
    }

    fn roll_back(&self, connection: usize) -> Outcome<()> {
        self.run(connection, "ROLLBACK", "ROLLBACK", false)?;
        self.world().running[connection] = None;
        Ok(())
    }

    fn commit(&self, connection: usize) -> Outcome<()> {
        if connection == READER {
            self.read(connection)?;
        }
        let Some(running) = self.world().running[connection].take() else { return Ok(()) };
        let conn = self.world().connections[connection].clone();
        let begun = self.calls();
        let outcome = conn.execute("COMMIT", &[]);
        let mut world = self.world();
        let mut committed = None;
        match outcome {
            Ok(_) if !running.has_failed => {
                world.commits += usize::from(!running.actions.is_empty());
                // As if it had run at its commit: so serializable transactions do. What changed nothing stands where it began.
                if running.view != *world.states[running.begun] {
                    let mut state = (*world.now()).clone();
                    for (action, rows) in &running.actions {
                        let again = action.run_on(&mut state);
                        if again != Ok(*rows) {
                            let sql = action.sql();
                            return Err(format!("{sql}: {rows} rows, but {again:?} in the order of the commits"));
                        }
                        world.note_form(action, *rows);
                    }
                    world.states.push(Arc::new(state));
                    committed = Some(world.states.len() - 1);
                    world.tally.commits += 1;
                }
            }
            Err(Error::Sql(_)) if running.has_failed => {}
            Err(Error::Conflict(_)) if running.commits_before < world.commits && !running.is_read_only => {
                world.tally.conflicts += 1;
            }
            outcome => return Err(format!("COMMIT: {outcome:?}, failed before: {}", running.has_failed)),
        }
        drop(world);
        let all: Vec<String> = running.actions.iter().map(|(action, _)| action.sql()).collect();
        self.mark("COMMIT", format!("COMMIT of {}", all.join("; ")), begun, committed, false);
        Ok(())
    }

    /// Statements of others come in between.
    fn checkpoint(self: &Arc<Self>, sql: &'static str) -> Outcome<()> {
        let is_interrupted = {
            let mut world = self.world();
            world.in_checkpoint = true;
            sql == "CHECKPOINT" && world.random().random_ratio(3, 4)
        };
        if is_interrupted {
            let writes_left = self.world().random().random_range(1..6);
            let living = Arc::clone(self);
            self.beside.interrupt(Interruption { writes_left, work: Box::new(move || living.beside_a_checkpoint()) });
        }
        let begun = self.calls();
        let outcome = self.execute(0, sql);
        self.beside.leave_alone();
        {
            let mut world = self.world();
            if let Err(error) = outcome {
                // A connection that is in a transaction cannot; nor can one that ended its own meanwhile, of course.
                if !matches!((&error, &world.running[0]), (Error::Sql(_), Some(_))) {
                    return Err(format!("{sql}: {error}"));
                }
                world.in_checkpoint = false;
                return Ok(());
            }
            let now = world.now();
            let filled = now.tables.iter().filter(|(_, table)| !table.rows.is_empty());
            world.pressed.extend(filled.map(|(name, _)| name.clone()));
        }
        let is_clean = self.world().level != Synchronous::Off;
        self.mark(sql, sql.to_owned(), begun, None, is_clean);
        self.world().in_checkpoint = false;
        Ok(())
    }

    fn beside_a_checkpoint(&self) {
        let steps = self.world().random().random_range(1..4);
        for _ in 0..steps {
            let (connection, is_on_rows) = {
                let mut world = self.world();
                world.tally.beside_checkpoints += 1;
                (world.random().random_range(0..CONNECTIONS), world.random().random_ratio(1, 2))
            };
            // What is being pressed is changed, and not by a transaction that may never commit.
            let is_free = connection != READER && self.world().running[connection].is_none();
            let outcome = match is_on_rows && is_free {
                true => self.change(connection, Generator::action_on_rows),
                false => self.step_of(connection),
            };
            if let Err(failure) = outcome {
                self.world().failure = Some(format!("during a checkpoint: {failure}"));
                return;
            }
        }
    }

    fn set_level(&self) -> Outcome<()> {
        let (name, level) = {
            let mut world = self.world();
            let all = [("full", Synchronous::Full), ("normal", Synchronous::Normal), ("off", Synchronous::Off)];
            let choices = if world.plan.level == Synchronous::Off { 3 } else { 2 };
            all[world.random().random_range(0..choices)]
        };
        // Leaving `off` makes everything durable.
        let is_clean = self.world().level == Synchronous::Off && level != Synchronous::Off;
        self.run(1, "SET", &format!("SET synchronous = '{name}'"), is_clean)?;
        self.world().level = level;
        Ok(())
    }

    fn close(&self) -> Outcome<()> {
        let database = {
            let mut world = self.world();
            world.running = Default::default();
            world.connections.clear();
            world.database.take()
        };
        let Some(database) = database else { return Ok(()) };
        let begun = self.calls();
        database.close().map_err(|error| format!("the close: {error}"))?;
        drop(database);
        self.mark("CLOSE", String::new(), begun, None, true);
        // One that had nothing to do leaves what a crash in another close has left.
        let (files, was_idle) = (self.disk.files(), begun == self.calls());
        match was_idle || files == [PathBuf::from(PATH)] {
            true => Ok(()),
            false => Err(format!("a closed database is one file, but there are {files:?}")),
        }
    }

    fn reopen(&self) -> Outcome<()> {
        self.close()?;
        let begun = self.calls();
        let level = self.world().level;
        let database = open(self.beside.clone(), level).map_err(|error| format!("it does not open again: {error}"))?;
        {
            let mut world = self.world();
            world.connections = (0..CONNECTIONS).map(|_| database.connect()).collect();
            world.database = Some(database);
        }
        self.mark("OPEN", String::new(), begun, None, false);
        self.read(0)
    }
}
