//! Plans and expressions as text, for EXPLAIN.

use crate::aggregate::widened_column;
use crate::measure::{Measured, OperatorCounters, Stage};
use crate::scan::ScanPlan;
use crate::{
    Aggregate, AggregateFunction, Counters, Expr, GroupingSet, LogicalType, Output, Pipeline, Run, ScanColumn, SortKey,
    Source, Step, TextFunction, WindowFunction, WindowKind,
};
use sinter_codec::{CompareOp, Scalar};
use std::borrow::Cow;
use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

impl fmt::Display for Pipeline {
    /// One line each for the scan, the two halves of the filter, the output and the limit, as far as they are there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PlanText { pipeline: self, run: None, stage: None }.fmt(f)
    }
}

impl Run {
    /// The plan as text; of a [measured](Pipeline::start_measured) run with what each operator did behind its line.
    pub fn explain(&self) -> impl fmt::Display + '_ {
        PlanText { pipeline: &self.pipeline, run: Some(self), stage: None }
    }
}

impl Pipeline {
    /// What aggregates of whole row groups are looked up in, where that is all they want.
    fn looks_into(&self) -> Option<&'static str> {
        let (Source::Table(table), Output::Aggregate(aggregates), []) = (&self.source, &self.output, &*self.steps)
        else {
            return None;
        };
        let types = self.column_types();
        let looked_into = |aggregate: &Aggregate| {
            use AggregateFunction::{Average, Max, Min, Sum};
            let column = match aggregate.argument.as_ref()? {
                Expr::Column(column) => *column,
                widened => widened_column(widened, &types)?,
            };
            let column = self.columns.get(column)?.table_column()?;
            table.looks_into(column).filter(|_| matches!(aggregate.function, Sum | Average | Min | Max))
        };
        aggregates.iter().find_map(looked_into)
    }
}

/// A plan, and perhaps a run of it, or what its parts did together.
struct PlanText<'a> {
    pipeline: &'a Pipeline,
    run: Option<&'a Run>,
    stage: Option<&'a Stage>,
}

impl fmt::Display for PlanText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pipeline = self.pipeline;
        let types = pipeline.column_types();
        let name = |column: usize| (pipeline.column_text(column), types[column].clone());
        let text = |expr: &Expr| ExprText(expr, &|column| pipeline.column_text(column), &types).to_string();
        let list = |exprs: &[Expr]| exprs.iter().map(&text).collect::<Vec<_>>().join(", ");
        let columns: Vec<String> = (0..pipeline.columns.len()).map(|column| pipeline.column_text(column)).collect();
        let columns = columns.join(", ");
        match &pipeline.source {
            Source::Table(table) => {
                write!(f, "Scan {} [{columns}]{}", table.name(), self.source_note())?;
                let found = self.run.and_then(|run| run.found_by.get());
                let by_keys = |(number, join)| {
                    let by = pipeline.found_by_join(number, join)?;
                    Some(format!("{by}, where the keys of join {} are few", number + 1))
                };
                let planned = || {
                    pipeline
                        .joins()
                        .enumerate()
                        .find_map(by_keys)
                        .filter(|_| self.run.is_none() && self.stage.is_none())
                };
                if let Some(seek) = found.cloned().or_else(|| table.seek()).or_else(planned) {
                    write!(f, "\n  seek: {seek}")?;
                }
            }
            Source::Gathered(inner) => {
                let what = match inner.output {
                    Output::Sorted { .. } => "Sorted rows",
                    Output::Windows { .. } => "Windows",
                    _ => "Groups",
                };
                write!(f, "{what} [{columns}]{} of", self.source_note())?;
                self.input(0, inner).write_indented(f)?;
            }
            Source::Union(all) => {
                write!(f, "Union [{columns}]{} of", self.source_note())?;
                for (number, inner) in all.iter().enumerate() {
                    self.input(number, inner).write_indented(f)?;
                }
            }
        }
        let planned;
        let plan = match self.run {
            Some(run) => Ok(run.scan_plan()),
            None => {
                planned = ScanPlan::new(pipeline);
                planned.as_ref()
            }
        };
        match plan {
            Ok(plan) => {
                let encoded = plan.encoded_text(&name);
                if !encoded.is_empty() {
                    write!(f, "\n  filter pushed to blocks: {}", encoded.join(" AND "))?;
                }
                if !plan.decoded().is_empty() {
                    let decoded: Vec<String> = plan.decoded().iter().map(&text).collect();
                    write!(f, "\n  filter on values: {}", decoded.join(" AND "))?;
                }
            }
            Err(error) => write!(f, "\n  {error}")?,
        }
        if let Some(run) = self.run.filter(|run| run.measured.is_some() && pipeline.source.table().is_some()) {
            write!(f, "\n  {}", scanned(&run.own_counters))?;
        }
        let mut joins = 0;
        for (number, step) in pipeline.steps.iter().enumerate() {
            match step {
                Step::Filter(condition) => write!(f, "\n  filter: {}{}", text(condition), self.step_note(number))?,
                Step::Join(join) => {
                    let run = self.run.map(|run| &*run.builds[joins]);
                    let build = PlanText { pipeline: &join.build, run, stage: None };
                    joins += 1;
                    let theirs = join.build.column_types();
                    let their_text =
                        |expr: &Expr| ExprText(expr, &|column| join.build.column_text(column), &theirs).to_string();
                    let equal = if join.nulls_are_equal { "IS NOT DISTINCT FROM" } else { "=" };
                    let keys = join.keys.iter().zip(join.build_exprs());
                    let keys: Vec<String> =
                        keys.map(|(ours, other)| format!("{} {equal} {}", text(ours), their_text(other))).collect();
                    let condition = join.condition.as_ref().map(&text);
                    let all: Vec<String> = keys.into_iter().chain(condition).collect();
                    let note = self.step_note(number);
                    write!(f, "\n  {} join: {}{note}", join.kind.name(), all.join(" AND "))?;
                    build.write_indented(f)?;
                }
            }
        }
        let note = self.output_note();
        match &pipeline.output {
            Output::Rows(exprs) => write!(f, "\n  output: {}{note}", list(exprs))?,
            Output::Aggregate(_) => {}
            Output::Groups { keys, .. } if keys.is_empty() => {}
            Output::Groups { keys, .. } => write!(f, "\n  group by: {}{note}", list(keys))?,
            Output::GroupingSets { keys, sets, .. } => {
                let set = |set: &GroupingSet| {
                    format!("({})", set.keys.iter().map(|&key| text(&keys[key])).collect::<Vec<_>>().join(", "))
                };
                let sets: Vec<String> = sets.iter().map(set).collect();
                write!(f, "\n  group by sets: {}{note}", sets.join(", "))?;
            }
            Output::Windows { rows, window } => {
                write!(f, "\n  output: {}", list(rows))?;
                if !window.partition.is_empty() {
                    write!(f, "\n  partition by: {}", list(&window.partition))?;
                }
                if !window.order.is_empty() {
                    let keys = window.order.iter().map(|key| format!("{}{}", text(&key.expr), direction(key)));
                    write!(f, "\n  order by: {}", keys.collect::<Vec<_>>().join(", "))?;
                }
                let functions = window.functions.iter().map(|function| function_text(function, &text));
                write!(f, "\n  window: {}{note}", functions.collect::<Vec<_>>().join(", "))?;
            }
            Output::Sorted { rows, order } => {
                let keys: Vec<String> =
                    order.keys.iter().map(|key| format!("{}{}", text(&key.expr), direction(key))).collect();
                write!(f, "\n  output: {}\n  order by: {}{note}", list(rows), keys.join(", "))?;
                if let Some(fetch) = order.fetch {
                    write!(f, "\n  limit: {fetch}")?;
                }
                if order.skip > 0 {
                    write!(f, "\n  offset: {}", order.skip)?;
                }
            }
        }
        let aggregates = pipeline.output.aggregates().iter().map(|aggregate| aggregate_text(aggregate, &text));
        let aggregates: Vec<String> = aggregates.collect();
        if !aggregates.is_empty() {
            let is_alone = match &pipeline.output {
                Output::Groups { keys, .. } => keys.is_empty(),
                Output::GroupingSets { .. } => false,
                _ => true,
            };
            let note = if is_alone { &note } else { "" };
            let within = pipeline.looks_into().map_or_else(String::new, |what| format!(", within {what}"));
            write!(f, "\n  aggregate: {}{within}{note}", aggregates.join(", "))?;
        }
        if let Some(limit) = pipeline.limit {
            write!(f, "\n  limit: {limit}")?;
        }
        let Some(run) = self.run else { return Ok(()) };
        for stage in run.stages.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match stage.parts {
                None => write!(f, "\n  did not fit the memory; spilled by")?,
                Some(parts) => write!(f, "\n  then in {parts} parts")?,
            }
            PlanText { pipeline: &stage.pipeline, run: None, stage: Some(stage) }.write_indented(f)?;
        }
        if let Some(run) = run.replacement.get() {
            write!(f, "\n  went on after spilling as")?;
            PlanText { pipeline: &run.pipeline, run: Some(run), stage: None }.write_indented(f)?;
        }
        Ok(())
    }
}

impl<'a> PlanText<'a> {
    /// One of the pipelines that rows come from.
    fn input(&self, number: usize, pipeline: &'a Pipeline) -> PlanText<'a> {
        PlanText { pipeline, run: self.run.map(|run| &*run.inputs[number]), stage: None }
    }

    fn write_indented(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_string().lines().try_for_each(|line| write!(f, "\n    {line}"))
    }

    fn measured(&self) -> Option<&'a Measured> {
        self.stage.map(|stage| &*stage.measured).or_else(|| self.run?.measured.as_deref())
    }

    fn source_note(&self) -> String {
        let note = |measured: &Measured| {
            if self.began_otherwise(measured) {
                return String::new();
            }
            let rows = measured.source.rows.load(Ordering::Relaxed);
            format!(" -- {rows} rows, {}{}", milliseconds(measured.source_nanos()), self.threads(measured))
        };
        self.measured().map_or_else(String::new, note)
    }

    fn step_note(&self, step: usize) -> String {
        let note = |measured: &Measured| {
            let counters = &measured.steps[step];
            if self.began_otherwise(measured) {
                return spilled(counters).replacen(',', " --", 1);
            }
            let rows = counters.rows.load(Ordering::Relaxed);
            let time = milliseconds(counters.nanos.load(Ordering::Relaxed));
            format!(" -- {rows} rows, {time}{}{}", self.threads(measured), spilled(counters))
        };
        self.measured().map_or_else(String::new, note)
    }

    fn output_note(&self) -> String {
        let note = |measured: &Measured| {
            if self.began_otherwise(measured) {
                return spilled(&measured.output).replacen(',', " --", 1);
            }
            let rows = measured.output.rows.load(Ordering::Relaxed);
            let time = milliseconds(measured.output.nanos.load(Ordering::Relaxed));
            let held = match measured.memory.bytes() {
                0 => String::new(),
                bytes => format!(", {bytes} bytes held"),
            };
            format!(" -- of {rows} rows, {time}{}{held}{}", self.threads(measured), spilled(&measured.output))
        };
        self.measured().map_or_else(String::new, note)
    }

    /// Whether others took the places of its operators before these began, which then have spilled at most.
    fn began_otherwise(&self, measured: &Measured) -> bool {
        let took_over = self.run.is_some_and(|run| run.replacement.get().is_some());
        took_over && measured.workers.load(Ordering::Relaxed) == 0
    }

    /// How many threads went through the operators of a pipeline; of spilled parts each counts its own.
    fn threads(&self, measured: &Measured) -> String {
        match (self.stage, measured.workers.load(Ordering::Relaxed)) {
            (Some(Stage { parts: Some(_), .. }), _) => String::new(),
            (_, 1) => ", 1 thread".to_owned(),
            (_, threads) => format!(", {threads} threads"),
        }
    }
}

fn spilled(counters: &OperatorCounters) -> String {
    match counters.spilled.load(Ordering::Relaxed) {
        0 => String::new(),
        bytes => format!(", {bytes} bytes spilled"),
    }
}

fn milliseconds(nanos: u64) -> String {
    format!("{:.3} ms", nanos as f64 / 1e6)
}

/// What a scan touched.
fn scanned(counters: &Counters) -> String {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut text = format!(
        "scanned: {} of {} row groups pruned, {} answered by statistics; {} of {} vectors rejected",
        of(&counters.groups_pruned),
        of(&counters.groups_total),
        of(&counters.groups_answered),
        of(&counters.vectors_rejected),
        of(&counters.vectors_total),
    );
    match of(&counters.filters_encoded) {
        0 => {}
        tests => {
            text += &format!(", {tests} tests on the encoded form left {} rows", of(&counters.rows_selected_encoded));
        }
    }
    match of(&counters.filters_decoded) {
        0 => {}
        tests => text += &format!(", {tests} tests on values"),
    }
    text + &format!("; {} bytes compressed, {} decoded", of(&counters.bytes_compressed), of(&counters.bytes_decoded))
}

impl Pipeline {
    fn column_text(&self, column: usize) -> String {
        match self.columns.get(column) {
            Some(ScanColumn::Table(column)) => self.source.column_text(*column),
            Some(ScanColumn::Length(column)) => format!("length({})", self.source.column_text(*column)),
            Some(ScanColumn::RowId) => "row id".to_owned(),
            None => self.payload_text(column - self.columns.len()),
        }
    }

    fn payload_text(&self, mut payload: usize) -> String {
        for join in self.joins() {
            if let Some(expr) = join.payload().get(payload) {
                let types = join.build.column_types();
                return ExprText(expr, &|column| join.build.column_text(column), &types).to_string();
            }
            payload -= join.payload().len();
        }
        format!("column {payload}")
    }
}

impl Source {
    fn column_text(&self, column: usize) -> String {
        match self {
            Source::Table(table) => table.column_name(column).to_owned(),
            Source::Gathered(inner) => inner.output_text(column),
            Source::Union(all) => all.first().map_or_else(String::new, |first| first.output_text(column)),
        }
    }
}

impl Pipeline {
    /// An expression over its columns.
    fn expr_text(&self, expr: &Expr) -> String {
        ExprText(expr, &|column| self.column_text(column), &self.column_types()).to_string()
    }

    /// The name of a table's column; of what is computed, however long that is, a word.
    pub(crate) fn short_text(&self, expr: &Expr) -> String {
        match (expr, &self.source) {
            (Expr::Column(column), Source::Table(table)) => match self.columns.get(*column) {
                Some(ScanColumn::Table(column)) => table.column_name(*column).to_owned(),
                Some(ScanColumn::Length(column)) => format!("length({})", table.column_name(*column)),
                _ => format!("column {column}"),
            },
            (Expr::Column(column), _) => format!("column {column}"),
            _ => "value".to_owned(),
        }
    }

    fn output_text(&self, column: usize) -> String {
        let text = |expr: &Expr| self.expr_text(expr);
        match &self.output {
            Output::Groups { keys, aggregates } => match keys.get(column) {
                Some(key) => text(key),
                None => {
                    aggregates.get(column - keys.len()).map_or_else(String::new, |part| aggregate_text(part, &text))
                }
            },
            Output::GroupingSets { keys, aggregates, .. } => match keys.get(column) {
                Some(key) => text(key),
                None if column == keys.len() => "grouping set".to_owned(),
                None => {
                    aggregates.get(column - keys.len() - 1).map_or_else(String::new, |part| aggregate_text(part, &text))
                }
            },
            Output::Rows(rows) | Output::Sorted { rows, .. } => rows.get(column).map_or_else(String::new, text),
            Output::Windows { rows, window } => match rows.get(column) {
                Some(row) => text(row),
                None => {
                    let function = window.functions.get(column - rows.len());
                    function.map_or_else(String::new, |function| function_text(function, &text))
                }
            },
            Output::Aggregate(_) => format!("column {column}"),
        }
    }
}

/// A window function with its argument, without its frame.
fn function_text(function: &WindowFunction, text: &dyn Fn(&Expr) -> String) -> String {
    let argument = function.argument.as_ref().map_or_else(String::new, text);
    match &function.kind {
        WindowKind::RowNumber => "row_number()".to_owned(),
        WindowKind::Rank => "rank()".to_owned(),
        WindowKind::DenseRank => "dense_rank()".to_owned(),
        WindowKind::PercentRank => "percent_rank()".to_owned(),
        WindowKind::CumeDist => "cume_dist()".to_owned(),
        WindowKind::Ntile(buckets) => format!("ntile({buckets})"),
        WindowKind::Shift(offset, _) if *offset < 0 => format!("lag({argument}, {})", offset.unsigned_abs()),
        WindowKind::Shift(offset, _) => format!("lead({argument}, {offset})"),
        WindowKind::First => format!("first_value({argument})"),
        WindowKind::Last => format!("last_value({argument})"),
        WindowKind::Nth(number) => format!("nth_value({argument}, {number})"),
        WindowKind::Aggregate(AggregateFunction::CountStar) => "count(*)".to_owned(),
        WindowKind::Aggregate(function) => format!("{}({argument})", aggregate_name(function)),
    }
}

fn aggregate_name(function: &AggregateFunction) -> &'static str {
    match function {
        AggregateFunction::CountStar | AggregateFunction::Count => "count",
        AggregateFunction::Sum => "sum",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
        AggregateFunction::Average => "avg",
        AggregateFunction::Variance { of_sample: true } => "var_samp",
        AggregateFunction::Variance { of_sample: false } => "var_pop",
        AggregateFunction::Deviation { of_sample: true } => "stddev_samp",
        AggregateFunction::Deviation { of_sample: false } => "stddev_pop",
        AggregateFunction::Distinct(function) => aggregate_name(function),
        AggregateFunction::Foreign(_) => "foreign",
    }
}

/// What is said of a sort key beside its expression; nothing for ascending values, then NULLs.
fn direction(key: &SortKey) -> &'static str {
    match (key.descending, key.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    }
}

fn aggregate_text(aggregate: &Aggregate, text: &dyn Fn(&Expr) -> String) -> String {
    let call = match &aggregate.function {
        AggregateFunction::Foreign(call) => call.function.text(),
        function => {
            let argument = aggregate.argument.as_ref().map_or("*".to_owned(), text);
            let distinct = if matches!(function, AggregateFunction::Distinct(_)) { "DISTINCT " } else { "" };
            format!("{}({distinct}{argument})", aggregate_name(function))
        }
    };
    match &aggregate.filter {
        Some(filter) => format!("{call} FILTER (WHERE {})", text(filter)),
        None => call,
    }
}

/// An expression with names for the columns.
struct ExprText<'a>(&'a Expr, &'a dyn Fn(usize) -> String, &'a [LogicalType]);

/// A stretch of an expression's text.
enum Piece<'a> {
    Text(Cow<'static, str>),
    Part(&'a Expr),
}

impl fmt::Display for ExprText<'_> {
    /// Piece by piece from a list of what is still to be written: expressions can be deep.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = vec![Piece::Part(self.0)];
        while let Some(piece) = open.pop() {
            match piece {
                Piece::Text(text) => f.write_str(&text)?,
                Piece::Part(expr) => {
                    let first = open.len();
                    self.pieces(expr, &mut open);
                    open[first..].reverse();
                }
            }
        }
        Ok(())
    }
}

impl ExprText<'_> {
    /// Adds what an expression's text is made of, in order.
    fn pieces<'a>(&self, expr: &'a Expr, out: &mut Vec<Piece<'a>>) {
        match expr {
            Expr::Column(column) => out.push((self.1)(*column).into()),
            Expr::Literal(scalar, ty) => out.push(scalar_text(scalar, ty).into()),
            Expr::Compare(op, left, right) => {
                out.extend([Piece::Part(left), format!(" {} ", compare_sign(*op)).into(), Piece::Part(right)]);
            }
            Expr::Arithmetic { op, left, right, .. } => {
                let sign = format!(" {} ", op.sign());
                out.extend(["(".into(), Piece::Part(left), sign.into(), Piece::Part(right), ")".into()]);
            }
            Expr::And(parts) => in_parentheses(parts, " AND ", out),
            Expr::Or(parts) => in_parentheses(parts, " OR ", out),
            Expr::Not(inner) => out.extend(["NOT ".into(), Piece::Part(inner)]),
            Expr::IsNull(inner) => out.extend([Piece::Part(inner), " IS NULL".into()]),
            Expr::IsNotNull(inner) => out.extend([Piece::Part(inner), " IS NOT NULL".into()]),
            Expr::InList { expr, list, has_null, negated } => {
                let ty = expr.type_over(self.2);
                let list: Vec<String> = list.iter().map(|scalar| scalar_text(scalar, &ty)).collect();
                let null = if *has_null { ", NULL" } else { "" };
                let not = if *negated { "NOT " } else { "" };
                out.extend([Piece::Part(expr), format!(" {not}IN ({}{null})", list.join(", ")).into()]);
            }
            Expr::IsKey { expr, keys } => out.extend([Piece::Part(expr), format!(" IN ({keys})").into()]),
            Expr::Like { expr, pattern, negated, case_insensitive } => {
                let not = if *negated { "NOT " } else { "" };
                let like = if *case_insensitive { "ILIKE" } else { "LIKE" };
                let pattern = pattern.replace('\'', "''");
                out.extend([Piece::Part(expr), format!(" {not}{like} '{pattern}'").into()]);
            }
            Expr::Text { function: TextFunction::Length, expr } => {
                out.extend(["length(".into(), Piece::Part(expr), ")".into()]);
            }
            Expr::Text { function: TextFunction::Substring { skipped, taken }, expr } => {
                let count = if *taken == u32::MAX { String::new() } else { format!(", {taken}") };
                let first = u64::from(*skipped) + 1;
                out.extend(["substr(".into(), Piece::Part(expr), format!(", {first}{count})").into()]);
            }
            Expr::Cast { expr, ty } => {
                out.extend(["CAST(".into(), Piece::Part(expr), format!(" AS {ty})").into()]);
            }
            Expr::Case { branches, otherwise, .. } => {
                out.push("CASE".into());
                for (condition, result) in branches {
                    out.extend([" WHEN ".into(), Piece::Part(condition), " THEN ".into(), Piece::Part(result)]);
                }
                if let Some(otherwise) = otherwise {
                    out.extend([" ELSE ".into(), Piece::Part(otherwise)]);
                }
                out.push(" END".into());
            }
            Expr::Foreign { function, arguments, .. } => {
                out.push(function.text().into());
                in_parentheses(arguments, ", ", out);
            }
        }
    }
}

/// Parts in parentheses.
fn in_parentheses<'a>(parts: &'a [Expr], by: &'static str, out: &mut Vec<Piece<'a>>) {
    out.push("(".into());
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push(by.into());
        }
        out.push(Piece::Part(part));
    }
    out.push(")".into());
}

impl From<&'static str> for Piece<'_> {
    fn from(text: &'static str) -> Self {
        Piece::Text(text.into())
    }
}

impl From<String> for Piece<'_> {
    fn from(text: String) -> Self {
        Piece::Text(text.into())
    }
}

/// A comparison as SQL writes it.
pub(crate) fn compare_sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Equal => "=",
        CompareOp::NotEqual => "<>",
        CompareOp::Less => "<",
        CompareOp::LessOrEqual => "<=",
        CompareOp::Greater => ">",
        CompareOp::GreaterOrEqual => ">=",
    }
}

/// A value of a type, as readable as is possible without much ado.
pub(crate) fn scalar_text(scalar: &Scalar, ty: &LogicalType) -> String {
    match (scalar, ty) {
        (Scalar::Null, _) => "NULL".to_owned(),
        (Scalar::Bytes(bytes), _) => format!("'{}'", String::from_utf8_lossy(bytes).replace('\'', "''")),
        (Scalar::Float(value), _) => value.to_string(),
        (Scalar::Int(value), LogicalType::Boolean) => if *value == 0 { "FALSE" } else { "TRUE" }.to_owned(),
        (
            Scalar::Int(value),
            LogicalType::Int8
            | LogicalType::Int16
            | LogicalType::Int32
            | LogicalType::Int64
            | LogicalType::UInt8
            | LogicalType::UInt16
            | LogicalType::UInt32
            | LogicalType::UInt64,
        ) => value.to_string(),
        (Scalar::Int(value), _) => {
            let array = crate::edge::scalar_to_arrow(scalar, ty);
            let text = array
                .and_then(|array| arrow::util::display::array_value_to_string(&array, 0).map_err(crate::edge::foreign));
            text.unwrap_or_else(|_| value.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArithmeticOp, Foreign, Result};
    use arrow::array::ArrayRef;
    use std::sync::Arc;

    #[derive(Debug)]
    struct Upper;

    impl Foreign for Upper {
        fn evaluate(&self, arguments: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
            Ok(arguments[0].clone())
        }

        fn text(&self) -> String {
            "upper".into()
        }
    }

    fn text(expr: &Expr) -> String {
        let types = [LogicalType::Int64, LogicalType::Int64, LogicalType::Utf8];
        ExprText(expr, &|column| format!("c{column}"), &types).to_string()
    }

    fn column(column: usize) -> Box<Expr> {
        Box::new(Expr::Column(column))
    }

    #[test]
    fn every_kind_has_its_text() {
        let sum = |left, right| Expr::Arithmetic { op: ArithmeticOp::Add, left, right, ty: LogicalType::Int64 };
        let is_less = Expr::Compare(CompareOp::Less, column(0), Box::new(sum(column(0), column(1))));
        let is_one_of = Expr::InList {
            expr: column(2),
            list: vec![Scalar::Bytes(b"it's".to_vec()), Scalar::Bytes(b"b".to_vec())],
            has_null: true,
            negated: true,
        };
        let like = Expr::Like { expr: column(2), pattern: "a'%".into(), negated: true, case_insensitive: true };
        let either = Expr::Or(vec![like, Expr::IsNull(column(1)), Expr::Not(Box::new(Expr::IsNotNull(column(0))))]);
        let case = Expr::Case {
            branches: vec![(Expr::And(vec![is_less, is_one_of]), Expr::Literal(Scalar::Int(1), LogicalType::Int64))],
            otherwise: Some(Box::new(Expr::Cast { expr: column(1), ty: LogicalType::Int64 })),
            ty: LogicalType::Int64,
        };
        let arguments = vec![case, either];
        let foreign = Expr::Foreign { function: Arc::new(Upper), arguments, ty: LogicalType::Utf8 };
        assert_eq!(
            text(&foreign),
            format!(
                "upper(CASE WHEN (c0 < (c0 + c1) AND c2 NOT IN ('it''s', 'b', NULL)) THEN 1 ELSE CAST(c1 AS {}) END, \
                 (c2 NOT ILIKE 'a''%' OR c1 IS NULL OR NOT c0 IS NOT NULL))",
                LogicalType::Int64
            )
        );
        assert_eq!(text(&Expr::And(Vec::new())), "()");
    }

    #[test]
    fn long_sums_need_no_stack() {
        let work = || {
            let mut sum = Expr::Column(0);
            for _ in 0..2000 {
                let left = Box::new(sum);
                sum = Expr::Arithmetic { op: ArithmeticOp::Add, left, right: column(1), ty: LogicalType::Int64 };
            }
            assert_eq!(text(&sum), format!("{}c0{}", "(".repeat(2000), " + c1)".repeat(2000)));
        };
        let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(work).expect("a thread");
        thread.join().expect("enough stack");
    }
}
