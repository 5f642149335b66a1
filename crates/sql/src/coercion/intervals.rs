//! Intervals by how long they are.
//!
//! DataFusion compares months first, then days, then the rest, so that 48 hours are not more than a day, nor 40 days more than
//! a month. As in PostgreSQL and DuckDB, a month is 30 days here, and a day 24 hours: what is compared or sorted by is the
//! length. And a date with what may have hours is a timestamp: DataFusion drops the hours of `DATE '2020-01-01' - INTERVAL '1
//! hour'`. Constants of days and months leave it a date.

use super::is_text;
use crate::times_of_text::{INTERVAL, INTERVAL_OF_TEXT};
use crate::walk::WalkPlan;
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast as cast_array;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Sort, Volatility, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};
use std::sync::{Arc, LazyLock};

const NANOS_PER_DAY: i128 = 86_400_000_000_000;
const DAYS_PER_MONTH: i128 = 30;

const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Nanoseconds; of the longest interval there are 22 digits.
const LENGTH: DataType = DataType::Decimal128(38, 0);

static LENGTH_OF_INTERVAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(LengthOfInterval { signature: Signature::any(1, Volatility::Immutable) }))
});

/// Whether one of what is compared is an interval.
pub(super) fn has_interval<'a>(compared: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    compared.into_iter().any(|expr| is_interval(expr, schema))
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

/// Puts lengths in the places of what is compared with an interval.
pub(super) fn compare_lengths(compared: Vec<&mut Expr>, schema: &DFSchema) {
    for expr in compared {
        let value = std::mem::take(expr);
        *expr = length(match value.get_type(schema) {
            Ok(DataType::Interval(_) | DataType::Duration(_)) => value,
            Ok(ty) if is_text(&ty) => INTERVAL_OF_TEXT.call(vec![value]),
            _ => cast(value, INTERVAL),
        });
    }
}

/// Whether something that may have hours, minutes or seconds is added to a date, or taken from one.
pub(super) fn are_date_and_hours(binary: &BinaryExpr, schema: &DFSchema) -> bool {
    let is_date = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Date32));
    match binary.op {
        Operator::Plus => {
            is_date(&binary.left) && may_have_hours(&binary.right, schema)
                || is_date(&binary.right) && may_have_hours(&binary.left, schema)
        }
        Operator::Minus => is_date(&binary.left) && may_have_hours(&binary.right, schema),
        _ => false,
    }
}

fn may_have_hours(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds != 0,
        expr => is_interval(expr, schema),
    }
}

/// Makes a timestamp of the date beside it.
pub(super) fn make_timestamp(binary: &mut BinaryExpr, schema: &DFSchema) {
    for operand in [&mut binary.left, &mut binary.right] {
        if matches!(operand.get_type(schema), Ok(DataType::Date32)) {
            **operand = cast(std::mem::take(&mut **operand), TIMESTAMP);
        }
    }
}

fn length(interval: Expr) -> Expr {
    LENGTH_OF_INTERVAL.call(vec![interval])
}

/// A sort that is by lengths where it is by intervals.
pub(super) fn sort_by_lengths(sort: Sort, schema: &DFSchema) -> Result<LogicalPlan> {
    let by_length = |expr: Expr| match is_interval(&expr, schema) {
        true => Transformed::yes(length(expr)),
        false => Transformed::no(expr),
    };
    Ok(LogicalPlan::Sort(sort).rewrite_exprs(&mut |expr| Ok(by_length(expr)))?.data)
}

/// Whether a frame ends so far before or behind the row's value, which is counted from the interval itself.
fn reaches_by_distance(frame: &WindowFrame) -> bool {
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    frame.units == WindowFrameUnits::Range && (is_distance(&frame.start_bound) || is_distance(&frame.end_bound))
}

/// Lets a window or an aggregate order its rows by lengths where it does by intervals, and part them so.
pub(super) fn order_by_lengths(expr: &mut Expr, schema: &DFSchema) {
    let (parts, order) = match expr {
        Expr::WindowFunction(call) if reaches_by_distance(&call.params.window_frame) => {
            (&mut call.params.partition_by[..], &mut [][..])
        }
        Expr::WindowFunction(call) => (&mut call.params.partition_by[..], &mut call.params.order_by[..]),
        Expr::AggregateFunction(call) if !is_bound_to_arguments(call) => (&mut [][..], &mut call.params.order_by[..]),
        _ => return,
    };
    for by in parts.iter_mut().chain(order.iter_mut().map(|sort| &mut sort.expr)) {
        if is_interval(by, schema) {
            *by = length(std::mem::take(by));
        }
    }
}

/// Whether an aggregate can be ordered by what it aggregates only.
fn is_bound_to_arguments(call: &AggregateFunction) -> bool {
    call.params.distinct || call.func.supports_within_group_clause()
}

/// Whether a window or an aggregate orders its rows by intervals, or parts them by such.
pub(super) fn is_ordered_by_interval(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::WindowFunction(call) => {
            let by_distance = reaches_by_distance(&call.params.window_frame);
            let order = call.params.order_by.iter().filter(|_| !by_distance).map(|sort| &sort.expr);
            has_interval(call.params.partition_by.iter().chain(order), schema)
        }
        Expr::AggregateFunction(call) if !is_bound_to_arguments(call) => {
            has_interval(call.params.order_by.iter().map(|sort| &sort.expr), schema)
        }
        _ => false,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LengthOfInterval {
    signature: Signature,
}

impl ScalarUDFImpl for LengthOfInterval {
    fn name(&self) -> &str {
        "length_of_interval"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(LENGTH)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Ok([intervals]) = <[ColumnarValue; 1]>::try_from(arguments.args) else {
            return internal_err!("length_of_interval takes one value");
        };
        let lengths = lengths(&intervals.into_array(rows)?)?.with_data_type(LENGTH);
        Ok(ColumnarValue::Array(Arc::new(lengths)))
    }
}

/// The lengths of intervals or durations.
fn lengths(values: &ArrayRef) -> Result<Decimal128Array> {
    if let DataType::Duration(unit) = values.data_type() {
        let nanos = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
        let counts = cast_array(values, &DataType::Int64)?;
        return Ok(counts.as_primitive::<Int64Type>().unary(|count| i128::from(count) * nanos));
    }
    let intervals = cast_array(values, &INTERVAL)?;
    Ok(intervals.as_primitive::<IntervalMonthDayNanoType>().unary(length_of))
}

fn length_of(IntervalMonthDayNano { months, days, nanoseconds }: IntervalMonthDayNano) -> i128 {
    (i128::from(months) * DAYS_PER_MONTH + i128::from(days)) * NANOS_PER_DAY + i128::from(nanoseconds)
}
