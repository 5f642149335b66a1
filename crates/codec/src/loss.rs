//! What a user lets go of, in the parentheses behind a scheme's name: `quantise(0.01)`.
//!
//! A loss is a rounding. It is done to the values before anything else, so statistics, NULLs and all that is written are of
//! the values that will be read; behind it, every scheme is exact. No value is rounded that its bound does not allow, NaN and
//! infinities are never, and rounding twice is rounding once. Nobody but the user chooses a loss.

use crate::fixed::{Integer, for_integers};
use crate::scaled::{Float, Point, Scale};
use crate::{Error, Physical, Result, SchemeEntry, Values, ValuesBuf, scheme_by_name};

/// A rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loss {
    /// Doubles become the nearest singles, unless that is an infinity.
    Singles,
    /// Floats become the nearest multiple of a step, a power of ten or two: half a step away at most.
    Steps(Point),
    /// Floats become others no further away than this.
    Within(f64),
    /// Integers are rounded down to multiples.
    Windows(i128),
}

/// The step for a bound, as a part of it. Twice the bound would do for real numbers; with less, what floats add to half a
/// step stays within the bound, too, and decimals do not lie in the middle between two steps. It costs 0.02 bits a value.
const STEP_OF_BOUND: f64 = 1.968_75;

/// Half a step, and a little more: steps of ten are not exact in binary.
const HALF: f64 = 0.500_000_5;

impl Loss {
    /// Whether it is one of values of this type.
    fn applies(self, physical: Physical) -> bool {
        match self {
            Loss::Singles => physical == Physical::F64,
            Loss::Steps(_) | Loss::Within(_) => matches!(physical, Physical::F32 | Physical::F64),
            Loss::Windows(_) => physical.is_integer(),
        }
    }

    /// Multiples of what a value becomes under this bound.
    pub(crate) fn scale_within(bound: f64) -> Scale {
        Scale::step(bound * STEP_OF_BOUND)
    }

    /// The values as they will be read.
    pub(crate) fn round(self, values: Values<'_>) -> ValuesBuf {
        let mut rounded = values.to_buf();
        match (self, &mut rounded) {
            (Loss::Singles, ValuesBuf::F64(values)) => values.iter_mut().for_each(|value| *value = as_single(*value)),
            (Loss::Steps(point), ValuesBuf::F32(values)) => to_steps(point, values),
            (Loss::Steps(point), ValuesBuf::F64(values)) => to_steps(point, values),
            (Loss::Within(bound), ValuesBuf::F32(values)) => within(bound, values),
            (Loss::Within(bound), ValuesBuf::F64(values)) => within(bound, values),
            (Loss::Windows(window), values) => for_integers!(ValuesBuf, values,
                values => values.iter_mut().for_each(|value| *value = floor(*value, window)),
                other => unreachable!("windows of {} values", other.physical().name())),
            (loss, values) => unreachable!("{loss:?} of {} values", values.physical().name()),
        }
        rounded
    }
}

fn as_single(value: f64) -> f64 {
    let single = f64::from(value as f32);
    if single.is_finite() { single } else { value }
}

fn to_steps<F: Float>(point: Point, values: &mut [F]) {
    let scale = point.scale();
    scale.round(scale.unit() * HALF, values);
}

fn within<F: Float>(bound: f64, values: &mut [F]) {
    Loss::scale_within(bound).round(bound, values);
}

/// The greatest multiple of `window` that is not above `value`, or `value` where its type has none.
fn floor<T: Integer>(value: T, window: i128) -> T {
    let wide = value.wide();
    let above = match (i64::try_from(wide), i64::try_from(window)) {
        (Ok(value), Ok(window)) => i128::from(value.rem_euclid(window)),
        _ => wide.rem_euclid(window),
    };
    let floor = wide.saturating_sub(above);
    if floor >= T::MIN.wide() && above <= wide.saturating_sub(i128::MIN) { T::cut(floor) } else { value }
}

/// A scheme as a user asks for it: by its name, or by its name with a loss in parentheses.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The scheme.
    pub entry: &'static SchemeEntry,
    pub(crate) loss: Option<Loss>,
}

impl Request {
    /// Reads `name` or `name(parameter)`, such as `quantise(0.01)`.
    ///
    /// # Errors
    /// [`Error::NoSuchScheme`]; [`Error::NoSuchParameter`] with an example of a right one.
    pub fn parse(text: &str) -> Result<Request> {
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Request { entry: scheme_by_name(text.trim())?, loss: None });
        };
        let entry = scheme_by_name(name.trim())?;
        let parameter = rest.trim_end().strip_suffix(')').map(str::trim);
        let loss = parameter.and_then(|parameter| entry.scheme.loss(parameter));
        match loss {
            Some(loss) => Ok(Request { entry, loss: Some(loss) }),
            None => Err(Error::NoSuchParameter {
                scheme: entry.name,
                parameter: rest.trim_end().strip_suffix(')').unwrap_or(rest).to_owned(),
                takes: entry.scheme.parameter().unwrap_or("none"),
            }),
        }
    }

    /// Whether it can be asked for values of this type.
    pub fn holds(&self, physical: Physical) -> bool {
        self.entry.holds(physical) && self.loss.is_none_or(|loss| loss.applies(physical))
    }

    /// Whether values may read back as others.
    pub fn is_lossy(&self) -> bool {
        self.loss.is_some()
    }
}
