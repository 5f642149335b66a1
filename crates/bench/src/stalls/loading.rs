//! The database that clients commit to, and what goes on beside them: the load, and one checkpoint after the other.

use super::{ROWS_PER_CLIENT, Settings};
use crate::timed_disk::TimedDisk;
use crate::{Failure, tpch};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use sinter_storage::RealFileSystem;
use sinterdb::{Config, Connection, Database, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Between two checkpoints.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(200);

/// What went on beside the clients.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) seconds: f64,
    pub(super) checkpoints: usize,
    /// Time within checkpoints.
    pub(super) checkpoint_seconds: f64,
}

/// A new database with rows for the clients, on a disk that notes what takes long.
pub(super) struct Opened {
    pub(super) database: Database,
    pub(super) disk: TimedDisk,
    folder: PathBuf,
}

impl Opened {
    pub(super) fn new(settings: &Settings, clients: usize) -> Result<Opened, Failure> {
        let folder = settings.folder.join(format!("stalls-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let disk = TimedDisk::new(Arc::new(RealFileSystem));
        let mut config = Config::builder().file_system(Arc::new(disk.clone()));
        if let Some(threads) = settings.threads {
            config = config.threads(threads);
        }
        let database = Database::open_with(folder.join("t.sinter"), config)?;
        let connection = database.connect();
        connection.execute(
            "CREATE TABLE client_rows (client BIGINT NOT NULL, id BIGINT NOT NULL, amount BIGINT NOT NULL, text VARCHAR)",
            &[],
        )?;
        let sql =
            "INSERT INTO client_rows SELECT ?, value, 0, 'a text of a client that commits' FROM generate_series(1, ?)";
        for client in 0..clients as i64 {
            connection.execute(sql, params![client, ROWS_PER_CLIENT])?;
        }
        connection.execute("CHECKPOINT", &[])?;
        Ok(Opened { database, disk, folder })
    }

    /// Holds what is there to what was acknowledged.
    pub(super) fn check(&self, rows: i64, amounts: Option<i64>) -> Result<(), Failure> {
        let sql = "SELECT count(*), CAST(sum(amount) AS BIGINT) FROM client_rows";
        let found = self.database.connect().sql(sql)?.collect()?;
        let number = |column: usize| found[0].column(column).as_primitive::<Int64Type>().value(0);
        if number(0) != rows || amounts.is_some_and(|amounts| amounts != number(1)) {
            let found = (number(0), number(1));
            return Err(format!("(rows, sum) are {found:?}, and should be ({rows}, {amounts:?})").into());
        }
        Ok(())
    }

    pub(super) fn close(self) -> Result<(), Failure> {
        self.database.close()?;
        Ok(std::fs::remove_dir_all(&self.folder)?)
    }
}

/// Loads all tables, with one checkpoint after the other, and runs clients until that is done.
pub(super) fn beside_load<T: Send>(
    settings: &Settings,
    opened: &Opened,
    clients: usize,
    client: impl Fn(usize, &dyn Fn() -> bool) -> Result<T, Failure> + Sync,
) -> Result<(Load, Vec<T>), Failure> {
    let is_over = AtomicBool::new(false);
    let (is_over, client) = (&is_over, &client);
    thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let load = named("load").spawn_scoped(scope, move || {
            let begun = Instant::now();
            let loaded = load(&opened.database.connect(), &settings.data);
            is_over.store(true, Ordering::Release);
            loaded.map(|()| begun.elapsed())
        })?;
        let checkpoints = named("checkpoint").spawn_scoped(scope, move || -> Result<Vec<Duration>, Failure> {
            let (connection, mut times) = (opened.database.connect(), Vec::new());
            while !is_over.load(Ordering::Acquire) {
                let begun = Instant::now();
                connection.execute("CHECKPOINT", &[])?;
                times.push(begun.elapsed());
                thread::sleep(CHECKPOINT_PAUSE);
            }
            Ok(times)
        })?;
        let clients = (0..clients).map(|number| {
            let work = move || client(number, &|| !is_over.load(Ordering::Acquire));
            named(&format!("client {number}")).spawn_scoped(scope, work)
        });
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let panicked = |_| Failure::from("a thread panicked");
        let clients = clients.into_iter().map(|client| client.join().map_err(panicked)?);
        let clients = clients.collect::<Result<Vec<T>, Failure>>()?;
        let checkpoints = checkpoints.join().map_err(panicked)??;
        let load = Load {
            seconds: load.join().map_err(panicked)??.as_secs_f64(),
            checkpoints: checkpoints.len(),
            checkpoint_seconds: checkpoints.iter().sum::<Duration>().as_secs_f64(),
        };
        Ok((load, clients))
    })
}

/// All tables but the largest, and that.
fn load(connection: &Connection, data: &Path) -> Result<(), Failure> {
    for table in tpch::TABLES {
        let file = data.join(format!("{table}.parquet"));
        let file = file.to_str().ok_or("the path is no text")?.replace('\'', "''");
        connection.execute(&format!("CREATE TABLE {table} AS SELECT * FROM '{file}'"), &[])?;
    }
    Ok(())
}
