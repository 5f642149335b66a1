//! The build side: rows on their way into a table.

use super::plan::JoinKind;
use super::ranks::Ranks;
use super::table::JoinTable;
use crate::aggregate::{Argument, Form};
use crate::estimate::bounds;
use crate::expr::{Machine, Operand, Program, compile};
use crate::flow::{Flow, Sink};
use crate::group::{IntScratch, Ints};
use crate::memory::Held;
use crate::store::RowStore;
use crate::{Error, Expr, LogicalType, Memory, Output, Pipeline, Result, Vector};
use sinter_codec::Physical;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is kept of a build side; shared by workers.
#[derive(Debug)]
pub(crate) struct BuildPlan {
    /// Its outputs are the columns of the store: the keys, then what of the payload is no key.
    program: Program,
    pub(super) key_types: Vec<LogicalType>,
    /// Which column of the store each payload is; `None` for what nobody asks for.
    pub(super) payload: Vec<Option<usize>>,
    pub(super) nulls_are_equal: bool,
    pub(super) kind: JoinKind,
    pub(super) has_condition: bool,
    /// For each key, the most different values of which a filter is made for the scan; 0 where none is wanted.
    pub(super) filter_keys_max: Vec<usize>,
    /// Whether the values of keys are listed where they are few.
    pub(super) lists_keys: bool,
    /// Between which integers the one key is, where it only matters which keys there are.
    only_keys: Option<(i128, i128)>,
}

/// What a join wants of its build side, whichever pipeline that is.
#[derive(Clone, Debug)]
pub(crate) struct WantedTable {
    pub(crate) kind: JoinKind,
    pub(crate) nulls_are_equal: bool,
    pub(crate) has_condition: bool,
    /// Of our keys.
    pub(crate) key_types: Vec<LogicalType>,
    /// Of the payload.
    pub(crate) is_wanted: Vec<bool>,
    /// For each key, the most different values of which a filter is made for the scan; 0 where none is wanted.
    pub(crate) filter_keys_max: Vec<usize>,
    /// Whether the values of keys are listed where they are few.
    pub(crate) lists_keys: bool,
}

impl BuildPlan {
    /// For a build side of which a join wants this.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the build side hands out no rows, or keys that ours cannot equal.
    pub(crate) fn new(build: &Pipeline, wanted: &WantedTable) -> Result<BuildPlan> {
        let WantedTable { kind, nulls_are_equal, has_condition, key_types, is_wanted, filter_keys_max, lists_keys } =
            wanted;
        let types = build.column_types();
        let exprs = if let Output::Rows(exprs) = &build.output { &exprs[..] } else { &[] };
        let Some((keys, payload)) = exprs.split_at_checked(key_types.len()) else {
            return Err(Error::Unsupported("a join with fewer keys on one side".into()));
        };
        if build.limit.is_some() {
            return Err(Error::Unsupported("a limit below a join".into()));
        }
        let same_types = keys.iter().zip(key_types).all(|(key, ty)| key.type_over(&types) == *ty);
        if !same_types {
            return Err(Error::Unsupported("a join by keys of different types".into()));
        }
        let wanted = payload.iter().zip(is_wanted).filter(|(_, wanted)| **wanted).map(|(expr, _)| expr);
        let exprs: Vec<&Expr> = keys.iter().chain(wanted).collect();
        let mut program = compile(&exprs, &types)?;
        // A payload that is a key, or another payload, is the same column.
        let outputs = std::mem::take(&mut program.outputs);
        let (kept, rest) = outputs.split_at(keys.len());
        program.outputs = kept.to_vec();
        let mut rest = rest.iter();
        let mut place = |wanted: &bool| {
            let output = if *wanted { rest.next()? } else { return None };
            let known = program.outputs.iter().position(|known| known == output);
            Some(known.unwrap_or_else(|| {
                program.outputs.push(output.clone());
                program.outputs.len() - 1
            }))
        };
        let payload = is_wanted.iter().map(&mut place).collect();
        let only_keys = match keys {
            [key] if !kind.has_payload() && !has_condition && !nulls_are_equal => bounds(key, build),
            _ => None,
        };
        let only_keys = only_keys.filter(|bounds| Ranks::between(*bounds, build.rows_estimate()).is_some());
        Ok(BuildPlan {
            program,
            key_types: key_types.clone(),
            payload,
            nulls_are_equal: *nulls_are_equal,
            kind: *kind,
            has_condition: *has_condition,
            filter_keys_max: filter_keys_max.clone(),
            lists_keys: *lists_keys,
            only_keys,
        })
    }

    /// The columns of the build side's pipeline that it reads.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.program.columns
    }

    /// One table of what all workers kept, made by so many threads.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Cancelled`].
    pub(crate) fn finish(
        &self,
        sinks: Vec<BuildSink>,
        threads: usize,
        memory: &Arc<dyn Memory>,
        cancelled: &AtomicBool,
    ) -> Result<JoinTable> {
        let (mut stores, mut all_keys, mut has_null, mut held) = (Vec::new(), Vec::new(), false, Held::new(memory));
        for sink in sinks {
            match sink.kept {
                Kept::Rows(rows) => stores.push(rows),
                Kept::Keys { keys, has_null: theirs, memory, .. } => {
                    all_keys.push(keys);
                    has_null |= theirs;
                    held.take_over(memory);
                }
            }
        }
        if let Some(keys) = Ranks::merged(all_keys, threads) {
            held.keep(keys.bytes());
            return JoinTable::of_keys(keys, has_null, self, held, memory);
        }
        let rows = RowStore::joined(stores, threads, cancelled)?.map_or_else(|| self.store(memory), Ok)?;
        JoinTable::new(rows, self, threads, memory, cancelled)
    }

    /// What a worker begins with.
    fn kept(&self, memory: &Arc<dyn Memory>) -> Result<Kept> {
        let Some(keys) = self.only_keys.and_then(|bounds| Ranks::between(bounds, usize::MAX)) else {
            return Ok(Kept::Rows(self.store(memory)?));
        };
        let mut held = Held::new(memory);
        held.need(keys.bytes())?;
        Ok(Kept::Keys { keys, has_null: false, ints: IntScratch::default(), memory: held })
    }

    fn store(&self, memory: &Arc<dyn Memory>) -> Result<RowStore> {
        let physical = |(_, ty): &(Operand, LogicalType)| ty.physical();
        let types: Option<Vec<Physical>> = self.program.outputs.iter().map(physical).collect();
        let types = types.ok_or_else(|| Error::Unsupported("lists and structs on the build side of a join".into()))?;
        Ok(RowStore::new(&types, memory))
    }
}

/// What a worker keeps of its rows.
enum Kept {
    Rows(RowStore),
    /// Which keys there are.
    Keys {
        keys: Ranks,
        has_null: bool,
        ints: IntScratch,
        memory: Held,
    },
}

/// Takes vectors into what a worker keeps.
pub(crate) struct BuildSink {
    plan: Arc<BuildPlan>,
    kept: Kept,
    machine: Machine,
    vectors: Vec<Vector>,
}

impl BuildSink {
    pub(crate) fn new(plan: &Arc<BuildPlan>, memory: &Arc<dyn Memory>) -> Result<BuildSink> {
        let vectors = plan.program.outputs.iter().map(|_| Vector::default()).collect();
        Ok(BuildSink { plan: Arc::clone(plan), kept: plan.kept(memory)?, machine: Machine::default(), vectors })
    }
}

impl Sink for BuildSink {
    fn columns(&self) -> &[usize] {
        self.plan.columns()
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        flow.load(self.plan.columns())?;
        let (program, rows) = (&self.plan.program, flow.rows());
        self.machine.run(program, flow.columns(), rows)?;
        match &mut self.kept {
            Kept::Rows(store) => {
                self.machine.outputs(program, flow.columns_mut(), rows, &mut self.vectors);
                store.push(&self.vectors, rows)?;
            }
            Kept::Keys { keys, has_null, ints, .. } => {
                let key = Argument::new(self.machine.frame(program, flow.columns(), rows), program.outputs[0].0);
                if let Form::Null = key.form {
                    *has_null = true;
                    return Ok(ControlFlow::Continue(()));
                }
                *has_null |= key.validity.is_some_and(|validity| !validity.all());
                match ints.ints(key) {
                    Some(Ints::Narrow { values, .. }) => key.for_each_present(|row| keys.set(values[row])),
                    // They lie between bounds of 64 bits.
                    Some(Ints::Wide(values)) => key.for_each_present(|row| keys.set(values[row] as i64)),
                    None => return Err(Error::Unsupported("keys that are no integers among integers".into())),
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
