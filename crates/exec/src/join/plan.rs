//! What a pipeline says of a join.

use crate::{Expr, LogicalType, Output, Pipeline};

/// Which rows come out of a join, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Each pair of rows with equal keys.
    Inner,
    /// The same, and each of our rows that has no partner, with NULLs in its partner's place.
    Left,
    /// Each of our rows, with its one partner, or with NULLs; two partners are an error. A scalar subquery is such a
    /// partner, without keys.
    Single,
    /// Each of our rows that has a partner, once and alone.
    Semi,
    /// Each of our rows that has none, alone.
    Anti,
}

impl JoinKind {
    /// Whether what the partner has comes out, too.
    pub fn has_payload(self) -> bool {
        matches!(self, JoinKind::Inner | JoinKind::Left | JoinKind::Single)
    }

    /// As plans call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            JoinKind::Inner => "inner",
            JoinKind::Left => "left",
            JoinKind::Single => "single",
            JoinKind::Semi => "semi",
            JoinKind::Anti => "anti",
        }
    }
}

/// A join of a pipeline's rows with those of another pipeline, by equal keys; without keys, of each with each.
#[derive(Clone, Debug)]
pub struct Join {
    /// Which rows come out.
    pub kind: JoinKind,
    /// The other pipeline, which must have [`Output::Rows`]: one key for each of ours, then what our rows get from their
    /// partners. Its rows are kept in memory.
    pub build: Box<Pipeline>,
    /// Our keys, of the types of the others.
    pub keys: Vec<Expr>,
    /// Whether NULLs are equal, too.
    pub nulls_are_equal: bool,
}

impl Join {
    /// What the build side hands out: keys, then payload. Empty where it is no pipeline of rows.
    pub(crate) fn build_exprs(&self) -> &[Expr] {
        match &self.build.output {
            Output::Rows(exprs) => exprs,
            Output::Aggregate(_) | Output::Groups { .. } => &[],
        }
    }

    /// What our rows get from their partners.
    pub(crate) fn payload(&self) -> &[Expr] {
        match self.kind.has_payload() {
            true => self.build_exprs().get(self.keys.len()..).unwrap_or_default(),
            false => &[],
        }
    }

    /// The types of it.
    pub(crate) fn payload_types(&self) -> Vec<LogicalType> {
        let types = self.build.column_types();
        self.payload().iter().map(|expr| expr.type_over(&types)).collect()
    }
}
