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
    /// Each of our rows whose one key is certainly none of theirs, alone: not if theirs has a NULL, and not a NULL of ours
    /// unless they have no row at all.
    NotIn,
    /// Each of our rows, once, with the payload of some partner, or with NULLs where it has none: a payload that is the same
    /// in all of theirs tells whether there is one.
    Mark,
    /// Each pair, and each of their rows that has no partner, with NULLs in place of whatever we had.
    Right,
    /// Each pair, and each row of either side that has no partner.
    Full,
    /// Each of their rows that has a partner, once; nothing of ours.
    RightSemi,
    /// Each of their rows that has none; nothing of ours.
    RightAnti,
}

impl JoinKind {
    /// Whether what the partner has comes out.
    pub fn has_payload(self) -> bool {
        !matches!(self, JoinKind::Semi | JoinKind::Anti | JoinKind::NotIn)
    }

    /// Whether some of their rows come out after all of ours.
    pub fn has_rest(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full | JoinKind::RightSemi | JoinKind::RightAnti)
    }

    /// Whether pairs of rows come out.
    pub(crate) fn has_pairs(self) -> bool {
        matches!(self, JoinKind::Inner | JoinKind::Left | JoinKind::Single | JoinKind::Right | JoinKind::Full)
    }

    /// Whether nothing comes of our rows that have no partner.
    pub(crate) fn needs_partner(self) -> bool {
        match self {
            JoinKind::Inner | JoinKind::Semi | JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti => true,
            JoinKind::Left | JoinKind::Single | JoinKind::Anti | JoinKind::NotIn | JoinKind::Mark | JoinKind::Full => {
                false
            }
        }
    }

    /// As plans call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            JoinKind::Inner => "inner",
            JoinKind::Left => "left",
            JoinKind::Single => "single",
            JoinKind::Semi => "semi",
            JoinKind::Anti => "anti",
            JoinKind::NotIn => "not in",
            JoinKind::Mark => "mark",
            JoinKind::Right => "right",
            JoinKind::Full => "full",
            JoinKind::RightSemi => "right semi",
            JoinKind::RightAnti => "right anti",
        }
    }
}

/// A join of a pipeline's rows with those of another pipeline, by equal keys; without keys, of each with each.
#[derive(Clone, Debug)]
pub struct Join {
    /// Which rows come out.
    pub kind: JoinKind,
    /// The other pipeline, which must have [`Output::Rows`]: one key for each of ours, then what our rows get from their
    /// partners. Its rows are kept in memory, or spilled.
    pub build: Box<Pipeline>,
    /// Our keys, of the types of the others.
    pub keys: Vec<Expr>,
    /// Whether NULLs are equal, too.
    pub nulls_are_equal: bool,
    /// What must be true, too, for two rows to be partners; over the columns before the join, then the payload. Only for
    /// kinds that ask whether there is a partner: pairs of others can be filtered afterwards.
    pub condition: Option<Expr>,
}

impl Join {
    /// What the build side hands out: keys, then payload. Empty where it is no pipeline of rows.
    pub fn build_exprs(&self) -> &[Expr] {
        match &self.build.output {
            Output::Rows(exprs) => exprs,
            Output::Aggregate(_)
            | Output::Groups { .. }
            | Output::GroupingSets { .. }
            | Output::Sorted { .. }
            | Output::Windows { .. } => &[],
        }
    }

    /// What our rows get from their partners. Where they do not come out with it, only the condition sees it; columns
    /// that come later are numbered as if it did.
    pub(crate) fn payload(&self) -> &[Expr] {
        match self.adds_columns() {
            true => self.build_exprs().get(self.keys.len()..).unwrap_or_default(),
            false => &[],
        }
    }

    /// Whether the payload has numbers among the columns.
    pub fn adds_columns(&self) -> bool {
        self.kind.has_payload() || self.condition.is_some()
    }

    /// The types of it.
    pub(crate) fn payload_types(&self) -> Vec<LogicalType> {
        let types = self.build.column_types();
        self.payload().iter().map(|expr| expr.type_over(&types)).collect()
    }
}
