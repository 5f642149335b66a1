//! Window functions.

use super::expr::Scope;
use super::group_key;
use super::part::Part;
use super::scalar::from_datafusion;
use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::WindowFunction as DfWindowFunction;
use datafusion::logical_expr::{
    Expr as DfExpr, SortExpr, Window as DfWindow, WindowFrame, WindowFrameBound, WindowFrameUnits, when,
};
use sinter_codec::Scalar;
use sinter_exec::{
    AggregateFunction, Bound, Distance, Frame, FrameUnit, LogicalType, Output, SortKey, TimeUnit, Window,
    WindowFunction, WindowKind, edge,
};

/// The rows of a part with what the functions of a node say of them; `None` where it is not ours.
pub(super) fn lower(node: &DfWindow, input: &Part) -> Option<Part> {
    let mut part = input.clone();
    let calls = node.window_expr.iter().map(call).collect::<Option<Vec<_>>>()?;
    let width = part.output.len();
    let fields = node.schema.fields().iter().skip(width);
    let mut left: Vec<(usize, &DfWindowFunction, LogicalType)> = Vec::with_capacity(calls.len());
    for (number, (call, field)) in calls.into_iter().zip(fields).enumerate() {
        left.push((number, call, edge::logical_type(field.data_type())?));
    }
    // Where the columns of the functions are, by function.
    let mut places = vec![0; left.len()];
    // Functions over the same partitions in the same order share a pass.
    while let Some(first) = left.first().map(|(_, call, _)| &call.params) {
        let is_like_first = |call: &DfWindowFunction| {
            call.params.partition_by == first.partition_by && call.params.order_by == first.order_by
        };
        let (mine, others): (Vec<_>, Vec<_>) = left.iter().cloned().partition(|(_, call, _)| is_like_first(call));
        if !part.can_be_joined() {
            return None;
        }
        let scope = Scope::new(node.input.schema(), &part.output[..width]);
        let partition = first.partition_by.iter().map(|key| group_key(key, &scope)).collect::<Option<_>>()?;
        let order = sort_keys(&first.order_by, &scope)?;
        let of = |(_, call, ty): &(usize, &DfWindowFunction, LogicalType)| function(call, ty.clone(), &scope);
        let functions = mine.iter().map(of).collect::<Option<Vec<_>>>()?;
        let window = Window { partition, order, functions };
        let rows = part.output.clone();
        mine.iter().zip(rows.len()..).for_each(|((number, ..), place)| places[*number] = place);
        part = Part::of_gathered(part, Output::Windows { rows, window });
        left = others;
    }
    let columns = (0..width).chain(places);
    part.output = columns.map(|column| part.output.get(column).cloned()).collect::<Option<_>>()?;
    Some(part)
}

/// The keys of an order; `None` where one is nested, or not ours.
pub(super) fn sort_keys(keys: &[SortExpr], scope: &Scope<'_>) -> Option<Vec<SortKey>> {
    let key = |key: &SortExpr| {
        let (descending, nulls_first) = (!key.asc, key.nulls_first);
        Some(SortKey { expr: group_key(&key.expr, scope)?, descending, nulls_first })
    };
    keys.iter().map(key).collect()
}

fn call(expr: &DfExpr) -> Option<&DfWindowFunction> {
    match expr {
        DfExpr::Alias(alias) => call(&alias.expr),
        DfExpr::WindowFunction(call) => Some(call),
        _ => None,
    }
}

fn function(call: &DfWindowFunction, ty: LogicalType, scope: &Scope<'_>) -> Option<WindowFunction> {
    let params = &call.params;
    if params.null_treatment.is_some() || params.distinct {
        return None;
    }
    let number = |argument: usize| match params.args.get(argument) {
        None => None,
        Some(DfExpr::Literal(value, _)) => match from_datafusion(value)?.0 {
            Scalar::Int(number) => i64::try_from(number).ok(),
            _ => None,
        },
        Some(_) => None,
    };
    let name = call.fun.name();
    let is_plain_count = matches!(params.args.first(), Some(DfExpr::Literal(value, _)) if !value.is_null());
    let kind = match name {
        "row_number" => WindowKind::RowNumber,
        "rank" => WindowKind::Rank,
        "dense_rank" => WindowKind::DenseRank,
        "percent_rank" => WindowKind::PercentRank,
        "cume_dist" => WindowKind::CumeDist,
        "ntile" => WindowKind::Ntile(number(0)?.try_into().ok().filter(|buckets| *buckets > 0)?),
        "lag" | "lead" => {
            let offset = if params.args.len() > 1 { number(1)? } else { 1 };
            let default = match params.args.get(2) {
                None => Scalar::Null,
                Some(DfExpr::Literal(value, _)) if value.is_null() => Scalar::Null,
                Some(DfExpr::Literal(value, _)) => {
                    let (default, default_type) = from_datafusion(value)?;
                    (default_type == ty).then_some(default)?
                }
                Some(_) => return None,
            };
            WindowKind::Shift(if name == "lag" { offset.checked_neg()? } else { offset }, default)
        }
        "first_value" => WindowKind::First,
        "last_value" => WindowKind::Last,
        "nth_value" => WindowKind::Nth(number(1)?.try_into().ok().filter(|number| *number > 0)?),
        "count" if is_plain_count && params.filter.is_none() => WindowKind::Aggregate(AggregateFunction::CountStar),
        "count" => WindowKind::Aggregate(AggregateFunction::Count),
        "sum" => WindowKind::Aggregate(AggregateFunction::Sum),
        "avg" => WindowKind::Aggregate(AggregateFunction::Average),
        "min" => WindowKind::Aggregate(AggregateFunction::Min),
        "max" => WindowKind::Aggregate(AggregateFunction::Max),
        _ => return None,
    };
    let has_argument = match &kind {
        WindowKind::Shift(..) | WindowKind::First | WindowKind::Last | WindowKind::Nth(_) => true,
        WindowKind::Aggregate(function) => *function != AggregateFunction::CountStar,
        _ => false,
    };
    let is_one = matches!(kind, WindowKind::Aggregate(_));
    if is_one && params.args.len() > 1 || !is_one && params.filter.is_some() {
        return None;
    }
    let argument = match (params.args.first(), params.filter.as_deref()) {
        _ if !has_argument => None,
        (None, _) => return None,
        (Some(argument), None) => Some(group_key(argument, scope)?),
        // Aggregates leave NULLs out.
        (Some(argument), Some(filter)) => Some(group_key(&when(filter.clone(), argument.clone()).end().ok()?, scope)?),
    };
    let key = match &params.order_by[..] {
        [key] => scope.type_of(&key.expr),
        _ => None,
    };
    let frame = frame(&params.window_frame, key.as_ref())?;
    Some(WindowFunction { kind, argument, frame, ty })
}

/// The frame of rows in an order by one key of this type, or by others.
fn frame(frame: &WindowFrame, key: Option<&LogicalType>) -> Option<Frame> {
    let unit = match frame.units {
        WindowFrameUnits::Rows => FrameUnit::Rows,
        WindowFrameUnits::Range => FrameUnit::Range,
        WindowFrameUnits::Groups => FrameUnit::Groups,
    };
    let bound = |bound: &WindowFrameBound| {
        let (value, sign) = match bound {
            WindowFrameBound::CurrentRow => return Some(Bound::Current),
            WindowFrameBound::Preceding(value) => (value, -1),
            WindowFrameBound::Following(value) => (value, 1),
        };
        if value.is_null() {
            return Some(Bound::Unbounded);
        }
        if unit == FrameUnit::Range {
            return distance(value, sign, key?).map(Bound::Distance);
        }
        match from_datafusion(value)?.0 {
            Scalar::Int(rows) => Some(Bound::Offset(i64::try_from(rows).ok()?.checked_mul(sign)?)),
            _ => None,
        }
    };
    Some(Frame { unit, start: bound(&frame.start_bound)?, end: bound(&frame.end_bound)? })
}

/// A distance between keys of a type; `None` where it is not the same everywhere, as that of months.
fn distance(value: &ScalarValue, sign: i64, key: &LogicalType) -> Option<Distance> {
    const NANOS_PER_DAY: i64 = 86_400_000_000_000;
    let interval = match value {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months == 0 => *interval,
        ScalarValue::IntervalDayTime(Some(interval)) => {
            IntervalMonthDayNano::new(0, interval.days, i64::from(interval.milliseconds) * 1_000_000)
        }
        ScalarValue::IntervalMonthDayNano(_) | ScalarValue::IntervalYearMonth(_) => return None,
        value => {
            let (scalar, ty) = from_datafusion(value)?;
            return match scalar {
                Scalar::Int(by) if ty == *key => Some(Distance::Int(by.checked_mul(sign.into())?)),
                Scalar::Float(by) if ty == *key => Some(Distance::Float(by * sign as f64)),
                _ => None,
            };
        }
    };
    let nanos = i64::from(interval.days).checked_mul(NANOS_PER_DAY)?.checked_add(interval.nanoseconds)?;
    let unit = match key {
        LogicalType::Date => NANOS_PER_DAY,
        LogicalType::Timestamp(TimeUnit::Microsecond, _) => 1000,
        LogicalType::Timestamp(TimeUnit::Nanosecond, _) => 1,
        _ => return None,
    };
    (nanos % unit == 0).then(|| Distance::Int((nanos / unit * sign).into()))
}
