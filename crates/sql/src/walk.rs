//! Walks over DataFusion's plans and expressions.
//!
//! DataFusion's own are compiled anew, with all that they call, for each closure that they are given. These take any closure and
//! are compiled once, so that a build has less to do; what they do and return is what DataFusion's do.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// What is called with each node.
type Visit<'v, N> = &'v mut dyn FnMut(&N) -> Result<TreeNodeRecursion>;

/// What makes of each node what is there in its place.
type Rewrite<'v, N> = &'v mut dyn FnMut(N) -> Result<Transformed<N>>;

/// Walks over a tree of such nodes.
pub(crate) trait WalkTree: Sized {
    /// [`TreeNode::apply`]
    fn visit_nodes<'n>(
        &'n self,
        visit: &mut dyn FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;
    /// [`TreeNode::exists`]
    fn any(&self, is_wanted: &mut dyn FnMut(&Self) -> Result<bool>) -> Result<bool>;
    /// [`TreeNode::transform_up`]
    fn rewrite_up(self, rewrite: Rewrite<'_, Self>) -> Result<Transformed<Self>>;
    /// [`TreeNode::transform_down`]
    fn rewrite_down(self, rewrite: Rewrite<'_, Self>) -> Result<Transformed<Self>>;
}

macro_rules! walk {
    ($node:ty) => {
        impl WalkTree for $node {
            fn visit_nodes<'n>(
                &'n self,
                visit: &mut dyn FnMut(&'n $node) -> Result<TreeNodeRecursion>,
            ) -> Result<TreeNodeRecursion> {
                self.apply(visit)
            }

            fn any(&self, is_wanted: &mut dyn FnMut(&$node) -> Result<bool>) -> Result<bool> {
                self.exists(is_wanted)
            }

            fn rewrite_up(self, rewrite: Rewrite<'_, $node>) -> Result<Transformed<$node>> {
                self.transform_up(rewrite)
            }

            fn rewrite_down(self, rewrite: Rewrite<'_, $node>) -> Result<Transformed<$node>> {
                self.transform_down(rewrite)
            }
        }
    };
}

walk!(Expr);
walk!(LogicalPlan);

/// Walks over plans that go into subqueries, or to a node's expressions.
pub(crate) trait WalkPlan: Sized {
    /// [`LogicalPlan::apply_with_subqueries`]
    fn visit_nodes_with_subqueries(&self, visit: Visit<'_, LogicalPlan>) -> Result<TreeNodeRecursion>;
    /// [`LogicalPlan::transform_up_with_subqueries`]
    fn rewrite_up_with_subqueries(self, rewrite: Rewrite<'_, LogicalPlan>) -> Result<Transformed<LogicalPlan>>;
    /// [`LogicalPlan::transform_down_with_subqueries`]
    fn rewrite_down_with_subqueries(self, rewrite: Rewrite<'_, LogicalPlan>) -> Result<Transformed<LogicalPlan>>;
    /// [`LogicalPlan::apply_expressions`]
    fn visit_exprs(&self, visit: Visit<'_, Expr>) -> Result<TreeNodeRecursion>;
    /// [`LogicalPlan::map_expressions`]
    fn rewrite_exprs(self, rewrite: Rewrite<'_, Expr>) -> Result<Transformed<LogicalPlan>>;
}

impl WalkPlan for LogicalPlan {
    fn visit_nodes_with_subqueries(&self, visit: Visit<'_, LogicalPlan>) -> Result<TreeNodeRecursion> {
        self.apply_with_subqueries(visit)
    }

    fn rewrite_up_with_subqueries(self, rewrite: Rewrite<'_, LogicalPlan>) -> Result<Transformed<LogicalPlan>> {
        self.transform_up_with_subqueries(rewrite)
    }

    fn rewrite_down_with_subqueries(self, rewrite: Rewrite<'_, LogicalPlan>) -> Result<Transformed<LogicalPlan>> {
        self.transform_down_with_subqueries(rewrite)
    }

    fn visit_exprs(&self, visit: Visit<'_, Expr>) -> Result<TreeNodeRecursion> {
        self.apply_expressions(visit)
    }

    fn rewrite_exprs(self, rewrite: Rewrite<'_, Expr>) -> Result<Transformed<LogicalPlan>> {
        self.map_expressions(rewrite)
    }
}
