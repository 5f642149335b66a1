//! Nodes at which a rule about expressions has nothing to do: it was there before, or there are only columns.

use crate::walk::WalkPlan;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Expressions of nodes that were simplified, by their hash. Two of the same hash cost a simplification.
#[derive(Debug, Default)]
pub(super) struct Settled(HashSet<u64>);

impl Settled {
    /// Whether a node's expressions are as simple as they get.
    pub(super) fn holds(&self, node: &LogicalPlan) -> Result<bool> {
        Ok(is_plain(node)? || self.0.contains(&hash_of(node)?))
    }

    /// They are.
    pub(super) fn add(&mut self, node: &LogicalPlan) -> Result<()> {
        if !is_plain(node)? {
            self.0.insert(hash_of(node)?);
        }
        Ok(())
    }
}

fn is_plain(node: &LogicalPlan) -> Result<bool> {
    let mut is_plain = true;
    node.visit_exprs(&mut |expr| {
        let inner = if let Expr::Alias(alias) = expr { &alias.expr } else { expr };
        is_plain &= matches!(inner, Expr::Column(_) | Expr::Literal(..));
        Ok(if is_plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_plain)
}

fn hash_of(node: &LogicalPlan) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(node).hash(&mut hasher);
    node.visit_exprs(&mut |expr| {
        expr.hash(&mut hasher);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(hasher.finish())
}

/// Whether no two of these are equal.
pub(super) fn are_different(exprs: &[Expr]) -> bool {
    exprs.iter().enumerate().all(|(place, expr)| !exprs[..place].contains(expr))
}
