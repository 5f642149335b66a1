//! A pipeline cut in two: what comes before a step, and the rest of it over a table of what has come so far.

use crate::{AggregateFunction, Expr, GroupingSet, Join, Output, Pipeline, SortKey, Source, Step, TableSource};
use sinter_codec::Scalar;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Pipeline {
    /// How many columns there are before this step.
    fn columns_before(&self, step: usize) -> usize {
        let joins = self.steps[..step].iter().map(|step| match step {
            Step::Join(join) => join.payload().len(),
            Step::Filter(_) => 0,
        });
        self.columns.len() + joins.sum::<usize>()
    }

    /// The columns that are there before this step and that it, later steps or the output want.
    pub(crate) fn columns_wanted(&self, step: usize) -> Vec<usize> {
        let mut wanted = BTreeSet::new();
        let mut rest = Pipeline { steps: self.steps[step..].to_vec(), ..self.clone() };
        rest.visit_exprs(&mut |expr| wanted.extend(expr.columns()));
        let count = self.columns_before(step);
        wanted.into_iter().filter(|&column| column < count).collect()
    }

    /// What comes before a step: these columns of the rows that get there.
    pub(crate) fn before(&self, step: usize, kept: &[usize]) -> Pipeline {
        Pipeline {
            source: self.source.clone(),
            columns: self.columns.clone(),
            filter: self.filter.clone(),
            steps: self.steps[..step].to_vec(),
            output: Output::Rows(kept.iter().map(|&column| Expr::Column(column)).collect()),
            limit: None,
            on_damage: self.on_damage.clone(),
        }
    }

    /// The rest of it from a step on, over a table whose columns are those that were `kept`.
    pub(crate) fn after(&self, step: usize, kept: &[usize], table: Arc<dyn TableSource>) -> Pipeline {
        let count = self.columns_before(step);
        let (steps, limit) = (self.steps[step..].to_vec(), self.limit);
        let mut rest = Pipeline { steps, limit, ..Pipeline::of_table(table, self.output.clone()) };
        let place = |column: usize| match column.checked_sub(count) {
            Some(later) => kept.len() + later,
            None => kept.iter().position(|&known| known == column).unwrap_or(usize::MAX),
        };
        rest.visit_exprs(&mut |expr| expr.visit_columns(&mut |column| *column = place(*column)));
        rest
    }

    /// Of [`Output::GroupingSets`], a pipeline for each half of the sets; of one set, one that groups by its keys and hands the
    /// same rows out. None for other outputs.
    pub(crate) fn halves_of_sets(&self) -> Vec<Pipeline> {
        let Output::GroupingSets { keys, sets, number_type, aggregates } = &self.output else { return Vec::new() };
        let [set] = &sets[..] else {
            let half = |sets: &[GroupingSet]| {
                let (keys, number_type, aggregates) = (keys.clone(), number_type.clone(), aggregates.clone());
                let output = Output::GroupingSets { keys, sets: sets.to_vec(), number_type, aggregates };
                Pipeline { output, ..self.clone() }
            };
            return sets.chunks(sets.len().div_ceil(2).max(1)).map(half).collect();
        };
        let (types, key_count) = (self.column_types(), set.keys.len());
        let own_keys = set.keys.iter().map(|&key| keys[key].clone()).collect();
        let output = Output::Groups { keys: own_keys, aggregates: aggregates.clone() };
        let groups = Pipeline { output, ..self.clone() };
        let mut row: Vec<Expr> = keys.iter().map(|key| Expr::Literal(Scalar::Null, key.type_over(&types))).collect();
        set.keys.iter().enumerate().for_each(|(column, &key)| row[key] = Expr::Column(column));
        row.push(Expr::Literal(Scalar::Int(set.number), number_type.clone()));
        row.extend((key_count..key_count + aggregates.len()).map(Expr::Column));
        vec![Pipeline::of_source(Source::Gathered(Box::new(groups)), Output::Rows(row))]
    }

    /// Shows every expression of steps and output that is over its columns: who renumbers or replaces columns relies on that.
    pub(crate) fn visit_exprs(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        for step in &mut self.steps {
            match step {
                Step::Filter(condition) => visit(condition),
                Step::Join(Join { keys, condition, .. }) => keys.iter_mut().chain(condition).for_each(&mut *visit),
            }
        }
        let visit_keys = |keys: &mut Vec<SortKey>, visit: &mut dyn FnMut(&mut Expr)| {
            keys.iter_mut().for_each(|key| visit(&mut key.expr));
        };
        match &mut self.output {
            Output::Rows(rows) => rows.iter_mut().for_each(visit),
            Output::Aggregate(aggregates) => aggregates.iter_mut().for_each(|aggregate| aggregate.visit_exprs(visit)),
            Output::Groups { keys, aggregates } | Output::GroupingSets { keys, aggregates, .. } => {
                keys.iter_mut().for_each(&mut *visit);
                aggregates.iter_mut().for_each(|aggregate| aggregate.visit_exprs(visit));
            }
            Output::Sorted { rows, order } => {
                rows.iter_mut().for_each(&mut *visit);
                visit_keys(&mut order.keys, visit);
            }
            Output::Windows { rows, window } => {
                let arguments = window.functions.iter_mut().filter_map(|function| function.argument.as_mut());
                rows.iter_mut().chain(&mut window.partition).chain(arguments).for_each(&mut *visit);
                visit_keys(&mut window.order, visit);
            }
        }
    }
}

impl crate::Aggregate {
    /// Shows what it is over.
    fn visit_exprs(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        let mut function = &mut self.function;
        while let AggregateFunction::Distinct(inner) = function {
            function = inner;
        }
        if let AggregateFunction::Foreign(call) = function {
            call.arguments.iter_mut().for_each(&mut *visit);
        }
        self.argument.iter_mut().chain(&mut self.filter).for_each(visit);
    }
}
