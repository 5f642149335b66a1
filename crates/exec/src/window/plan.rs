//! What is asked about the rows around a row.

use crate::sort::SortPlan;
use crate::{AggregateFunction, Error, Expr, LogicalType, Order, Pipeline, Result, SortKey};
use sinter_codec::{Physical, Scalar};
use std::sync::Arc;

/// Window functions over the same partitions in the same order.
#[derive(Clone, Debug)]
pub struct Window {
    /// Rows with equal values of these are a partition, NULLs among them; not nested.
    pub partition: Vec<Expr>,
    /// In which order the rows of a partition stand. Rows that are equal by it are peers.
    pub order: Vec<SortKey>,
    /// What is asked.
    pub functions: Vec<WindowFunction>,
}

/// A window function.
#[derive(Clone, Debug)]
pub struct WindowFunction {
    /// Which.
    pub kind: WindowKind,
    /// Over what, where the kind has an argument.
    pub argument: Option<Expr>,
    /// Which rows around a row count; for aggregates and values of a frame.
    pub frame: Frame,
    /// Type of the result.
    pub ty: LogicalType,
}

/// The kinds of window functions.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowKind {
    /// Counts the rows of the partition from 1.
    RowNumber,
    /// The row number of the first peer.
    Rank,
    /// Counts the groups of peers from 1.
    DenseRank,
    /// The share of the rows before the first peer in all others; 0 for one row.
    PercentRank,
    /// The share of the rows up to the last peer.
    CumeDist,
    /// The number of the bucket, when the partition is cut into so many of about equal size.
    Ntile(u64),
    /// The argument of the row so far behind (LEAD), or before if negative (LAG); the scalar where there is none.
    Shift(i64, Scalar),
    /// The argument of the first row of the frame.
    First,
    /// The argument of the last row of the frame.
    Last,
    /// The argument of the n-th row of the frame, counted from 1.
    Nth(u64),
    /// An aggregate over the frame.
    Aggregate(AggregateFunction),
}

impl WindowFunction {
    /// Whether it makes a difference which rows are equal by the order.
    fn looks_at_peers(&self) -> bool {
        match self.kind {
            WindowKind::RowNumber | WindowKind::Ntile(_) | WindowKind::Shift(..) => false,
            WindowKind::Rank | WindowKind::DenseRank | WindowKind::PercentRank | WindowKind::CumeDist => true,
            WindowKind::First | WindowKind::Last | WindowKind::Nth(_) | WindowKind::Aggregate(_) => {
                self.frame.unit != FrameUnit::Rows
            }
        }
    }
}

impl WindowKind {
    /// Whether the result is one of the argument's values.
    pub(super) fn is_pick(&self) -> bool {
        matches!(
            self,
            WindowKind::Shift(..)
                | WindowKind::First
                | WindowKind::Last
                | WindowKind::Nth(_)
                | WindowKind::Aggregate(AggregateFunction::Min | AggregateFunction::Max)
        )
    }
}

/// From where to where a frame is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// What its ends are counted in.
    pub unit: FrameUnit,
    /// The first row.
    pub start: Bound,
    /// The last row.
    pub end: Bound,
}

/// What the ends of a frame are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    /// Rows: the row itself is the current one.
    Rows,
    /// Values of the one key of the order: the current row are all peers.
    Range,
    /// Groups of peers, which are the current row together.
    Groups,
}

impl Frame {
    /// The whole partition.
    pub const ALL: Frame = Frame { unit: FrameUnit::Rows, start: Bound::Unbounded, end: Bound::Unbounded };

    /// Whether an end is so far from the row's key.
    pub(super) fn has_distance(self) -> bool {
        [self.start, self.end].iter().any(|bound| matches!(bound, Bound::Distance(_)))
    }
}

/// One end of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// That of the partition.
    Unbounded,
    /// The row itself, or its peers.
    Current,
    /// So many rows or groups behind it, or before it if negative.
    Offset(i64),
    /// Where the key is so much farther in the order, or less far if negative; for [`FrameUnit::Range`].
    Distance(Distance),
}

/// How far keys are from each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distance {
    /// In units of the key's type, as it is kept.
    Int(i128),
    /// Of floats.
    Float(f64),
}

/// Shared by workers.
#[derive(Debug)]
pub(crate) struct WindowPlan {
    /// Sorts what comes out, then the keys of the partition, then those of the order if it makes a difference which rows are
    /// equal by it, then arguments.
    pub(super) sort: Arc<SortPlan>,
    /// How many columns come out beside those of functions.
    pub(super) row_count: usize,
    pub(super) partition_count: usize,
    /// How many of the order's keys are among the columns; none where nobody looks at peers.
    pub(super) peer_key_count: usize,
    /// Of the first key of the order.
    pub(super) descending: bool,
    pub(super) functions: Vec<WindowFunction>,
    /// Which of the columns behind those that come out is the argument of each function.
    pub(super) arguments: Vec<Option<usize>>,
    /// The types of these columns.
    pub(super) types: Vec<LogicalType>,
}

impl WindowPlan {
    /// For the rows that a pipeline hands out, with columns of these types.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for nested values, and functions of what they do not suit.
    pub(crate) fn new(
        rows: &[Expr],
        window: &Window,
        types: &[LogicalType],
        pipeline: &Pipeline,
    ) -> Result<WindowPlan> {
        let ascending = |expr: &Expr| SortKey { expr: expr.clone(), descending: false, nulls_first: false };
        let keys: Vec<SortKey> = window.partition.iter().map(ascending).chain(window.order.iter().cloned()).collect();
        let looks_at_peers = window.functions.iter().any(WindowFunction::looks_at_peers);
        let peer_key_count = if looks_at_peers { window.order.len() } else { 0 };
        let kept = &keys[..window.partition.len() + peer_key_count];
        let mut hidden: Vec<Expr> = kept.iter().map(|key| key.expr.clone()).collect();
        let mut arguments = Vec::with_capacity(window.functions.len());
        for function in &window.functions {
            check(function, &window.order, types)?;
            arguments.push(function.argument.as_ref().map(|_| hidden.len()));
            hidden.extend(function.argument.clone());
        }
        let types_of_hidden = hidden.iter().map(|expr| expr.type_over(types)).collect();
        let order = Order { keys, skip: 0, fetch: None };
        let all: Vec<Expr> = rows.iter().cloned().chain(hidden).collect();
        Ok(WindowPlan {
            sort: Arc::new(SortPlan::new(&all, &order, types, pipeline)?),
            row_count: rows.len(),
            partition_count: window.partition.len(),
            peer_key_count,
            descending: window.order.first().is_some_and(|key| key.descending),
            functions: window.functions.clone(),
            arguments,
            types: types_of_hidden,
        })
    }

    /// The columns of the pipeline that it reads.
    pub(crate) fn columns(&self) -> &[usize] {
        self.sort.all_columns()
    }

    /// How rows are sorted before.
    pub(crate) fn sort(&self) -> &Arc<SortPlan> {
        &self.sort
    }
}

fn check(function: &WindowFunction, order: &[SortKey], types: &[LogicalType]) -> Result<()> {
    let argument = function.argument.as_ref().map(|expr| expr.type_over(types));
    let is_fine = match (&function.kind, &argument) {
        (WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank | WindowKind::Ntile(1..), None) => {
            function.ty.physical().is_some_and(Physical::is_integer)
        }
        (WindowKind::PercentRank | WindowKind::CumeDist, None) => function.ty == LogicalType::Float64,
        (WindowKind::Aggregate(AggregateFunction::CountStar), None)
        | (WindowKind::Aggregate(AggregateFunction::Count), Some(_)) => function.ty == LogicalType::Int64,
        (WindowKind::Aggregate(AggregateFunction::Sum | AggregateFunction::Average), Some(ty)) => {
            crate::expr::digits(ty).is_some() || ty.is_float()
        }
        (kind, Some(ty)) => kind.is_pick() && *ty == function.ty && ty.physical().is_some(),
        _ => false,
    };
    let suits = |bound: Bound| match (bound, function.frame.unit, order) {
        (Bound::Unbounded | Bound::Current, ..) | (Bound::Offset(_), FrameUnit::Rows | FrameUnit::Groups, _) => true,
        (Bound::Distance(distance), FrameUnit::Range, [key]) => {
            let ty = key.expr.type_over(types);
            match distance {
                Distance::Int(_) => ty.physical().is_some_and(Physical::is_integer) && ty != LogicalType::Interval,
                Distance::Float(_) => ty.is_float(),
            }
        }
        _ => false,
    };
    if is_fine && suits(function.frame.start) && suits(function.frame.end) {
        return Ok(());
    }
    Err(Error::Unsupported(format!("{:?} of {argument:?} over {:?}", function.kind, function.frame)))
}
