//! What a run makes of its pipeline's rows.

use crate::aggregate::AggregatePlan;
use crate::expr::{Program, compile};
use crate::group::GroupPlan;
use crate::join::{BuildPlan, WantedTable};
use crate::sort::SortPlan;
use crate::spill::{NullKeys, PartsPlan, Split};
use crate::window::WindowPlan;
use crate::{Error, Output, Pipeline, Result};
use std::sync::Arc;

/// What a run is for. Where another pipeline takes the place of its own, it is for the same.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// Hands out what the pipeline says.
    Whole,
    /// Makes the table of a join, whose build side it is.
    Build(WantedTable),
    /// Spills the pipeline's rows in parts, by as many of its last expressions as are keys.
    Parts { key_count: usize, split: Split, nulls: NullKeys },
}

impl Role {
    /// How that is done.
    pub(super) fn plan(&self, pipeline: &Pipeline) -> Result<OutputPlan> {
        match self {
            Role::Whole => OutputPlan::new(pipeline),
            Role::Build(wanted) => Ok(OutputPlan::Build(Arc::new(BuildPlan::new(pipeline, wanted)?))),
            Role::Parts { key_count, split, nulls } => {
                let Output::Rows(exprs) = &pipeline.output else {
                    return Err(Error::Unsupported("parts of what are no rows".into()));
                };
                let (kept, keys) = exprs.split_at(exprs.len() - key_count);
                let kept: Vec<_> = kept.iter().map(|expr| (expr.clone(), pipeline.short_text(expr))).collect();
                let plan = PartsPlan::new(&kept, keys, &pipeline.column_types(), split, *nulls)?;
                Ok(OutputPlan::Parts(Arc::new(plan)))
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum OutputPlan {
    Rows(Program),
    Aggregate(AggregatePlan),
    Groups(Arc<GroupPlan>),
    Sorted(Arc<SortPlan>),
    Windows(WindowPlan),
    /// The table of a join.
    Build(Arc<BuildPlan>),
    /// Rows that do not fit the memory.
    Parts(Arc<PartsPlan>),
}

impl OutputPlan {
    /// What a pipeline hands out.
    fn new(pipeline: &Pipeline) -> Result<OutputPlan> {
        let types = &pipeline.column_types();
        Ok(match &pipeline.output {
            Output::Rows(exprs) => OutputPlan::Rows(compile(&exprs.iter().collect::<Vec<_>>(), types)?),
            Output::Aggregate(aggregates) => {
                OutputPlan::Aggregate(AggregatePlan::new(aggregates, &pipeline.columns, types)?)
            }
            Output::Groups { keys, aggregates } => {
                OutputPlan::Groups(Arc::new(GroupPlan::new(keys, None, aggregates, types, pipeline)?))
            }
            Output::GroupingSets { keys, sets, number_type, aggregates } => {
                let sets = Some((&sets[..], number_type));
                OutputPlan::Groups(Arc::new(GroupPlan::new(keys, sets, aggregates, types, pipeline)?))
            }
            Output::Windows { rows, window } => OutputPlan::Windows(WindowPlan::new(rows, window, types, pipeline)?),
            Output::Sorted { rows, order } => {
                OutputPlan::Sorted(Arc::new(SortPlan::new(rows, order, types, pipeline)?))
            }
        })
    }

    /// The columns that it reads.
    pub(super) fn columns(&self) -> &[usize] {
        match self {
            OutputPlan::Rows(program) => &program.columns,
            OutputPlan::Aggregate(plan) => plan.columns(),
            OutputPlan::Groups(plan) => plan.columns(),
            OutputPlan::Sorted(plan) => plan.all_columns(),
            OutputPlan::Windows(plan) => plan.columns(),
            OutputPlan::Build(plan) => plan.columns(),
            OutputPlan::Parts(plan) => plan.columns(),
        }
    }
}
