//! DataFusion's operators and those of our engine draw on the database's budget.
//!
//! An operator that cannot spill gets what there is. So does one that can, while less than half of it is used; from there
//! on it gets its share, so that several in one plan spill a little each, instead of the first taking all and the last
//! failing. So does DataFusion's `FairSpillPool` from the beginning, with a size of its own; here loads, tables and other
//! connections draw on the same budget, and what there is changes.

use crate::spill_file::TemporaryFile;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use sinter_exec::{Memory, SpillCompression, SpillFile};
use sinter_storage::{Budget, Reservation, Use};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all queries hold together.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    memory: Reservation,
    /// Of it, by operators that cannot spill.
    unspillable: usize,
    /// Operators that can.
    spillers: usize,
}

impl QueryMemory {
    pub(crate) fn new(budget: &Arc<Budget>) -> QueryMemory {
        let memory = budget.take(Use::Query, 0);
        QueryMemory { held: Mutex::new(Held { memory, unspillable: 0, spillers: 0 }) }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// What an operator that spills may hold at most, if all want more.
    fn share(&self, bytes_max: usize) -> usize {
        bytes_max.saturating_sub(self.unspillable) / self.spillers.max(1)
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "memory_limit"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.held().spillers += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.held().spillers -= usize::from(consumer.can_spill());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut held = self.held();
        held.memory.take(additional);
        if !reservation.consumer().can_spill() {
            held.unspillable += additional;
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut held = self.held();
        held.memory.shrink(shrink);
        if !reservation.consumer().can_spill() {
            held.unspillable -= shrink;
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut held = self.held();
        let (can_spill, bytes_max) = (reservation.consumer().can_spill(), held.memory.budget().query_bytes_max());
        let (share, is_scarce) = (held.share(bytes_max), held.memory.bytes() + additional > bytes_max / 2);
        if can_spill && is_scarce && reservation.size() + additional > share {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "out of memory: {} wants {additional} bytes more and has {}, of a share of {share} bytes; raise \
                 memory_limit, or make the query smaller",
                reservation.consumer().name(),
                reservation.size()
            )));
        }
        let grown = held.memory.grow(additional);
        grown.map_err(|error| DataFusionError::ResourcesExhausted(error.to_string()))?;
        if !can_spill {
            held.unspillable += additional;
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.held().memory.bytes()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.held().memory.budget().query_bytes_max())
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an operator of our engine holds of it.
#[derive(Debug)]
pub(crate) struct OperatorMemory {
    held: MemoryReservation,
    spilling: Spilling,
}

/// How operators of a session spill: an extension of its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spilling {
    /// `SET sinter.operator_memory = '64MB'`: what an operator that can spill holds at most.
    pub(crate) beyond_bytes: Option<usize>,
    /// `SET sinter.spill_compression = 'none'`: what of spilled rows is compressed.
    pub(crate) compression: SpillCompression,
}

impl OperatorMemory {
    pub(crate) fn of(operator: &str, context: &TaskContext) -> Arc<dyn Memory> {
        let runtime = context.runtime_env();
        let held = MemoryConsumer::new(operator).register(&runtime.memory_pool);
        let spilling = context.session_config().get_extension::<Spilling>();
        let spilling = spilling.map_or_else(Spilling::default, |spilling| *spilling);
        Arc::new(OperatorMemory { held, spilling })
    }
}

impl Memory for OperatorMemory {
    fn grow(&self, bytes: usize) -> sinter_exec::Result<()> {
        let granted = self.held.try_grow(bytes);
        granted.map_err(|error| sinter_exec::Error::OutOfMemory(crate::Error::from(error).to_string()))
    }

    fn shrink(&self, bytes: usize) {
        self.held.shrink(bytes);
    }

    fn spill_file(&self) -> sinter_exec::Result<Option<Arc<dyn SpillFile>>> {
        TemporaryFile::make(self.spilling.compression).map(Some)
    }

    fn spills_beyond(&self) -> Option<usize> {
        self.spilling.beyond_bytes
    }
}
