//! Variances by group.
//!
//! Integers are summed with their squares, which is exact, and the squares of their distances from the mean follow from
//! that without a loss. Floats, and integers too large for it, keep mean and squared distances (Welford, Technometrics
//! 1962); those of two sets of values become one as in Chan, Golub and LeVeque, The American Statistician 1983. Where there
//! are few groups, the rows of a vector are such a set for each of them, so that no row waits for a division.

use super::ints::{IntScratch, Ints};
use crate::aggregate::{Argument, Form};
use crate::dispatch::each_narrow;
use crate::{Error, Result};
use sinter_codec::Values;

/// Integers as far from zero as these can be squared and summed in any number of rows that there may be.
const REACH_MAX: u64 = 1 << 31;

/// So few groups that a vector has many rows of each.
const FEW: usize = 16;

/// Values so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    count: f64,
    mean: f64,
    /// The sum of the squares of distances from the mean.
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let distance = value - self.mean;
        self.mean += distance / self.count;
        self.squares += distance * (value - self.mean);
    }

    /// Adds other values.
    fn merge(&mut self, other: Spread) {
        if other.count == 0.0 {
            return;
        }
        let count = self.count + other.count;
        let distance = other.mean - self.mean;
        self.mean += distance * (other.count / count);
        self.squares += other.squares + distance * distance * self.count * (other.count / count);
        self.count = count;
    }

    /// The variance of all values, or of those of whom these are a sample; `None` for too few.
    pub(crate) fn variance(self, of_sample: bool) -> Option<f64> {
        let divisor = if of_sample { self.count - 1.0 } else { self.count };
        // Values that are all the same may come out below zero by what was rounded off.
        let squares = if self.squares < 0.0 { 0.0 } else { self.squares };
        (divisor > 0.0).then_some(squares / divisor)
    }
}

/// Integers so far.
#[derive(Clone, Copy, Debug, Default)]
struct Exact {
    count: u64,
    sum: i128,
    squares: i128,
}

impl Exact {
    fn merge(&mut self, other: Exact) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn spread(self) -> Spread {
        if self.count == 0 {
            return Spread::default();
        }
        // squares - sum² / count, where sum = whole * count + rest.
        let count = i128::from(self.count);
        let (whole, rest) = (self.sum.div_euclid(count), self.sum.rem_euclid(count));
        let squares = self.squares - whole * (self.sum + rest);
        let of_rest = rest as f64 * (rest as f64 / self.count as f64);
        Spread {
            count: self.count as f64,
            mean: self.sum as f64 / self.count as f64,
            squares: squares as f64 - of_rest,
        }
    }
}

/// Running variances.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    exact: Vec<Exact>,
    floats: Vec<Spread>,
    scratch: IntScratch,
    values: Vec<f64>,
}

impl Moments {
    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Exact>() * self.exact.capacity() + size_of::<Spread>() * self.floats.capacity()
    }

    /// Adds a vector whose rows are of `groups`, of `group_count` in all.
    pub(crate) fn add(&mut self, argument: Argument<'_>, groups: &[u32], group_count: usize) -> Result<()> {
        let values = match argument.form {
            Form::Flat(values) | Form::Constant(values) => Some(values),
            Form::Codes(_, dictionary) => Some(dictionary.values.as_values()),
            _ => None,
        };
        if let Some(Values::F32(_) | Values::F64(_)) = values {
            write_floats(argument, &mut self.values)?;
            self.add_floats(argument, groups, group_count);
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        match scratch.ints(argument).ok_or_else(not_a_number)? {
            Ints::Narrow { values, reach } if reach <= REACH_MAX => {
                self.exact.resize(group_count, Exact::default());
                let exact = &mut self.exact[..];
                argument.for_each_present(|row| {
                    let (value, exact) = (values[row], &mut exact[groups[row] as usize]);
                    exact.count += 1;
                    exact.sum += i128::from(value);
                    exact.squares += i128::from(value * value);
                });
            }
            Ints::Narrow { values, .. } => {
                self.values.clear();
                self.values.extend(values.iter().map(|&value| value as f64));
                self.add_floats(argument, groups, group_count);
            }
            Ints::Wide(values) => {
                self.values.clear();
                self.values.extend(values.iter().map(|&value| value as f64));
                self.add_floats(argument, groups, group_count);
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    /// Adds the floats that were written.
    fn add_floats(&mut self, argument: Argument<'_>, groups: &[u32], group_count: usize) {
        self.floats.resize(group_count, Spread::default());
        let (values, floats) = (&self.values[..], &mut self.floats[..]);
        if floats.len() > FEW {
            argument.for_each_present(|row| floats[groups[row] as usize].add(values[row]));
            return;
        }
        if let ([all], None) = (&mut *floats, argument.validity) {
            return all.merge(spread_of(values));
        }
        let mut vector = [Spread::default(); FEW];
        argument.for_each_present(|row| {
            let own = &mut vector[groups[row] as usize % FEW];
            own.count += 1.0;
            own.mean += values[row];
        });
        vector.iter_mut().filter(|own| own.count > 0.0).for_each(|own| own.mean /= own.count);
        // What was rounded off while the mean was summed up shows in the distances from it.
        let mut rests = [0.0; FEW];
        argument.for_each_present(|row| {
            let group = groups[row] as usize % FEW;
            let distance = values[row] - vector[group].mean;
            rests[group] += distance;
            vector[group].squares += distance * distance;
        });
        for ((all, mut own), rest) in floats.iter_mut().zip(vector).zip(rests) {
            if own.count > 0.0 {
                let off = rest / own.count;
                own.squares -= rest * off;
                own.mean += off;
                all.merge(own);
            }
        }
    }

    /// Adds what another worker found, of each pair of a group of its and the one of ours that it is.
    pub(crate) fn merge(
        &mut self,
        other: &Moments,
        pairs: impl Iterator<Item = (usize, usize)> + Clone,
        group_count: usize,
    ) {
        if !other.exact.is_empty() {
            self.exact.resize(group_count, Exact::default());
            for (theirs, ours) in pairs.clone() {
                self.exact[ours].merge(other.exact.get(theirs).copied().unwrap_or_default());
            }
        }
        if !other.floats.is_empty() {
            self.floats.resize(group_count, Spread::default());
            for (theirs, ours) in pairs {
                self.floats[ours].merge(other.floats.get(theirs).copied().unwrap_or_default());
            }
        }
    }

    /// The values of a group.
    pub(crate) fn get(&self, group: usize) -> Spread {
        let mut all = self.exact.get(group).copied().unwrap_or_default().spread();
        all.merge(self.floats.get(group).copied().unwrap_or_default());
        all
    }
}

/// What all of these values are.
fn spread_of(values: &[f64]) -> Spread {
    let count = values.len() as f64;
    let [sum] = sums(values, |value| [value]);
    let mean = sum / count;
    let [rest, squares] = sums(values, |value| [value - mean, (value - mean) * (value - mean)]);
    Spread { count, mean: mean + rest / count, squares: squares - rest * (rest / count) }
}

/// Sums of what is made of each value, by turns in several parts, so that no addition waits for the last one.
fn sums<const N: usize>(values: &[f64], of: impl Fn(f64) -> [f64; N]) -> [f64; N] {
    const PARTS: usize = 8;
    let mut parts = [[0.0; PARTS]; N];
    let (eights, rest) = values.as_chunks::<PARTS>();
    let mut add = |part: usize, value: f64| {
        for (sums, term) in parts.iter_mut().zip(of(value)) {
            sums[part] += term;
        }
    };
    for eight in eights {
        eight.iter().enumerate().for_each(|(part, &value)| add(part, value));
    }
    rest.iter().for_each(|&value| add(0, value));
    parts.map(|sums| sums.iter().sum())
}

/// Writes over `out` the floats of a vector, one per row; those at NULLs are any.
fn write_floats(argument: Argument<'_>, out: &mut Vec<f64>) -> Result<()> {
    out.clear();
    macro_rules! entries {
        ($codes:expr, $entries:expr) => {
            each_narrow!($codes, codes => out.extend(codes.iter().map(|&code| {
                // What stands at a NULL may be the code of nothing.
                $entries.get(code as usize).map_or(0.0, |&entry| f64::from(entry))
            })))
        };
    }
    match argument.form {
        Form::Flat(Values::F32(values)) => out.extend(values.iter().map(|&value| f64::from(value))),
        Form::Flat(Values::F64(values)) => out.extend_from_slice(values),
        Form::Constant(Values::F32(one)) => out.resize(argument.rows, one[0].into()),
        Form::Constant(Values::F64(one)) => out.resize(argument.rows, one[0]),
        Form::Codes(codes, dictionary) => match dictionary.values.as_values() {
            Values::F32(values) => entries!(codes, values),
            Values::F64(values) => entries!(codes, values),
            _ => return Err(not_a_number()),
        },
        _ => return Err(not_a_number()),
    }
    Ok(())
}

fn not_a_number() -> Error {
    Error::Unsupported("a variance of something other than numbers".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact_of(values: &[i64]) -> Spread {
        let mut exact = Exact::default();
        values.iter().for_each(|&value| {
            exact.merge(Exact { count: 1, sum: value.into(), squares: i128::from(value) * i128::from(value) });
        });
        exact.spread()
    }

    #[test]
    fn integers_far_from_zero_lose_nothing() {
        let far = 1 << 30;
        let near = exact_of(&[-2, -1, 0, 4, 9]);
        let away = exact_of(&[far - 2, far - 1, far, far + 4, far + 9]);
        assert_eq!(near.variance(true), Some(20.5));
        assert_eq!(away.variance(true), Some(20.5));
        assert_eq!(exact_of(&[-far - 1, -far, -far + 1]).variance(true), Some(1.0));
    }

    #[test]
    fn two_sets_are_as_one() {
        let values: Vec<f64> = (0..100).map(|value| 1e9 + f64::from(value * value % 37)).collect();
        let of = |values: &[f64]| {
            let mut spread = Spread::default();
            values.iter().for_each(|&value| spread.add(value));
            spread
        };
        let (all, mut parts) = (of(&values), of(&values[..13]));
        parts.merge(of(&values[13..]));
        parts.merge(Spread::default());
        let (all, parts) = (all.variance(false).unwrap(), parts.variance(false).unwrap());
        assert!((all - parts).abs() < 1e-6 * all, "{all} {parts}");
    }

    #[test]
    fn numbers_far_from_zero_keep_their_distances() {
        let values: Vec<f64> = (0..1000).map(|row| 4e15 + f64::from(row % 5)).collect();
        let argument = Argument { form: Form::Flat(Values::F64(&values)), validity: None, rows: values.len() };
        let integers: Vec<i64> = values.iter().map(|&value| value as i64).collect();
        let of_integers = Argument { form: Form::Flat(Values::I64(&integers)), ..argument };
        for (groups, argument) in
            [1, FEW, FEW + 1].into_iter().flat_map(|groups| [(groups, argument), (groups, of_integers)])
        {
            let mut moments = Moments::default();
            (0..30).for_each(|_| moments.add(argument, &[0; 1000], groups).expect("numbers"));
            let variance = moments.get(0).variance(false).expect("many values");
            assert!((variance - 2.0).abs() < 1e-3, "{variance} with {groups} groups");
        }
        let same = [0.1; 999];
        let argument = Argument { form: Form::Flat(Values::F64(&same)), validity: None, rows: same.len() };
        let mut moments = Moments::default();
        moments.add(argument, &[0; 999], 1).expect("numbers");
        assert!(moments.get(0).variance(true).is_some_and(|variance| (0.0..1e-30).contains(&variance)));
    }

    #[test]
    fn one_value_is_no_sample() {
        assert_eq!(exact_of(&[7]).variance(true), None);
        assert_eq!(exact_of(&[7]).variance(false), Some(0.0));
        assert_eq!(exact_of(&[]).variance(false), None);
    }
}
