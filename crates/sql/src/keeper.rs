//! The thread that does what nobody has to wait for: pressing delta batches, and checkpoints.

use crate::{Database, Error, Result};
use sinter_storage::ObjectId;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

/// Woken by commits, stopped by the close.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    due: Mutex<Due>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Due {
    /// Tables that commits have changed since they were last looked at.
    objects: BTreeSet<ObjectId>,
    is_running: bool,
}

impl Shared {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to look at; false at the end.
    fn is_woken(&self) -> bool {
        let mut due = self.due();
        while due.is_running && due.objects.is_empty() {
            due = self.changed.wait(due).unwrap_or_else(PoisonError::into_inner);
        }
        due.is_running
    }
}

impl Keeper {
    /// Starts the thread. It does not keep the database open.
    pub(crate) fn start(&self, database: Weak<Database>) -> Result<()> {
        self.shared.due().is_running = true;
        let shared = Arc::clone(&self.shared);
        let work = move || {
            while shared.is_woken() {
                let Some(database) = database.upgrade() else { return };
                // What fails here is tried again after the next commit; nothing is lost by that.
                database.settle_woken();
                let _ = database.vacuum_where_due();
                let _ = database.checkpoint_where_due();
            }
        };
        let thread = std::thread::Builder::new().name("sinter keeper".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Error::Io(format!("cannot start a thread: {error}")))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Tells it which tables a commit has changed; false where no thread is there to do anything.
    pub(crate) fn wake(&self, objects: &[ObjectId]) -> bool {
        let mut due = self.shared.due();
        if due.is_running {
            due.objects.extend(objects);
            self.shared.changed.notify_one();
        }
        due.is_running
    }

    /// The tables that it was told of since the last call. Whatever takes long in its thread asks for them now and then.
    pub(crate) fn woken(&self) -> BTreeSet<ObjectId> {
        std::mem::take(&mut self.shared.due().objects)
    }

    /// Ends the thread, and waits until it has.
    pub(crate) fn stop(&self) {
        self.shared.due().is_running = false;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last handle on a database may be dropped by this very thread.
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
