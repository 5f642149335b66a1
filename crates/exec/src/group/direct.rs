//! Groups by position: where each key of a vector is one of few, a row's place in an array says its group.
//!
//! A place is made of what stands in the vector: codes of its dictionaries, distances from the least number. It means
//! nothing elsewhere, so places are forgotten when another dictionary comes or numbers lie elsewhere, and the groups of
//! places not met yet are found by their keys. One row group's vectors mostly share their dictionaries.

use crate::aggregate::{Argument, Form};
use crate::dispatch::each_narrow;
use crate::vector::scalar_at;
use sinter_codec::{Bitmap, Scalar, Values};

/// Places, at most. They are cleared when a dictionary changes, and should stay in the cache.
const PLACES_MAX: usize = 1 << 14;

/// A place that was not met yet; no group has this number.
const UNKNOWN: u32 = u32::MAX;

/// After so many vectors it is looked at whether places help.
const TRIAL_VECTORS: u32 = 32;

/// What the places of one key mean. One place more, the first, is for NULL.
#[derive(Clone, Debug, PartialEq)]
enum Domain {
    Nothing,
    /// Codes of the dictionary with this identity.
    Dictionary {
        id: u64,
        len: usize,
    },
    /// Numbers from one on.
    Span {
        low: i128,
        len: usize,
    },
    /// One value.
    One(Scalar),
}

impl Domain {
    fn len(&self) -> usize {
        match self {
            Domain::Nothing => 1,
            Domain::Dictionary { len, .. } | Domain::Span { len, .. } => len + 1,
            Domain::One(_) => 2,
        }
    }
}

/// Groups by place.
#[derive(Debug)]
pub(super) struct Direct {
    domains: Vec<Domain>,
    groups: Vec<u32>,
    /// By row of the vector.
    places: Vec<u32>,
    vectors: u32,
    /// Vectors that had a place not met before.
    missed: u32,
    is_worth_it: bool,
}

impl Direct {
    pub(super) fn new(key_count: usize) -> Direct {
        Direct {
            domains: vec![Domain::Nothing; key_count],
            groups: Vec::new(),
            places: Vec::new(),
            vectors: 0,
            missed: 0,
            is_worth_it: true,
        }
    }

    /// Finds the places of a vector's rows. False where there are too many places, or too many were new of late.
    pub(super) fn place(&mut self, keys: &[Argument<'_>], rows: usize) -> bool {
        if !self.is_worth_it {
            return false;
        }
        for (domain, key) in self.domains.iter_mut().zip(keys) {
            match widened(domain, key) {
                Some(Some(wider)) => {
                    *domain = wider;
                    // Places mean something else now.
                    self.groups.clear();
                }
                Some(None) => {}
                None => {
                    self.count(true);
                    return false;
                }
            }
        }
        let places = self.domains.iter().try_fold(1usize, |places, domain| {
            let places = places.saturating_mul(domain.len());
            (places <= PLACES_MAX).then_some(places)
        });
        let Some(places) = places else {
            // Perhaps it was only that one vector lies far from the others.
            self.domains.fill(Domain::Nothing);
            self.groups.clear();
            self.count(true);
            return false;
        };
        if self.groups.is_empty() {
            self.groups.resize(places, UNKNOWN);
        }
        self.places.clear();
        self.places.resize(rows, 0);
        let mut stride = 1;
        for (domain, key) in self.domains.iter().zip(keys) {
            add_places(domain, key, stride, &mut self.places);
            stride *= domain.len() as u32;
        }
        true
    }

    /// Writes the groups of the placed rows over `out`; false where one is not known.
    pub(super) fn find(&mut self, out: &mut Vec<u32>) -> bool {
        out.clear();
        let groups = &self.groups[..];
        let mut any = 0;
        out.extend(self.places.iter().map(|&place| {
            let group = groups[place as usize];
            any = any.max(group);
            group
        }));
        self.count(any == UNKNOWN);
        any != UNKNOWN
    }

    /// Takes over the groups of the placed rows.
    pub(super) fn learn(&mut self, groups: &[u32]) {
        for (&place, &group) in self.places.iter().zip(groups) {
            self.groups[place as usize] = group;
        }
    }

    fn count(&mut self, missed: bool) {
        self.vectors += 1;
        self.missed += u32::from(missed);
        if self.vectors == TRIAL_VECTORS {
            self.is_worth_it = self.missed * 2 <= TRIAL_VECTORS;
            (self.vectors, self.missed) = (0, 0);
        }
    }
}

/// The domain that a key needs beside what there was: `Some(None)` where that is enough, `None` where there is none.
fn widened(domain: &Domain, key: &Argument<'_>) -> Option<Option<Domain>> {
    let span = |low: i128, high: i128| -> Option<Option<Domain>> {
        let (mut low, mut high) = (low, high);
        if let Domain::Span { low: old, len } = domain {
            let old_high = old + *len as i128 - 1;
            if *old <= low && high <= old_high {
                return Some(None);
            }
            (low, high) = (low.min(*old), high.max(old_high));
        }
        let len = usize::try_from(high.checked_sub(low)?).ok()?.checked_add(1)?;
        (len < PLACES_MAX).then_some(Some(Domain::Span { low, len }))
    };
    match key.form {
        Form::Null => Some(None),
        Form::Truth(_) => span(0, 1),
        Form::Codes(codes, dictionary) => {
            let (id, len) = (dictionary.id, dictionary.values.len());
            // A NULL may have any code, and damage too: their rows have no place here.
            let greatest = each_narrow!(codes, codes => codes.iter().copied().max().map_or(0, |code| code as usize));
            match domain {
                _ if greatest >= len || len >= PLACES_MAX => None,
                Domain::Dictionary { id: known, .. } if *known == id => Some(None),
                _ => Some(Some(Domain::Dictionary { id, len })),
            }
        }
        Form::BaseDelta(base, deltas) => {
            let greatest = each_narrow!(deltas, deltas => deltas.iter().copied().max().map_or(0, i128::from));
            span(base, base + greatest)
        }
        Form::Constant(one) => match scalar_at(one, 0) {
            Scalar::Int(value) => span(value, value),
            value => match domain {
                Domain::One(known) if *known == value => Some(None),
                _ => Some(Some(Domain::One(value))),
            },
        },
        Form::Flat(values) => {
            let (low, high) = bounds(values, key.validity)?;
            span(low, high)
        }
        Form::Nested(_) => None,
    }
}

/// The least and the greatest of plain integers, those at NULLs too; `None` for other types.
fn bounds(values: Values<'_>, validity: Option<&Bitmap>) -> Option<(i128, i128)> {
    macro_rules! integers {
        ($values:expr) => {
            match validity {
                None => ($values.iter().copied().min()?.into(), $values.iter().copied().max()?.into()),
                Some(validity) => {
                    let present = || validity.ones().map(|row| $values[row]);
                    (present().min()?.into(), present().max()?.into())
                }
            }
        };
    }
    Some(match values {
        Values::I8(values) => integers!(values),
        Values::I16(values) => integers!(values),
        Values::I32(values) => integers!(values),
        Values::I64(values) => integers!(values),
        Values::I128(values) => integers!(values),
        Values::U8(values) => integers!(values),
        Values::U16(values) => integers!(values),
        Values::U32(values) => integers!(values),
        Values::U64(values) => integers!(values),
        Values::F32(_) | Values::F64(_) | Values::Bytes(_) => return None,
    })
}

/// Adds to each row's place what one key contributes. NULL's is 0, whatever value stands beside it.
fn add_places(domain: &Domain, key: &Argument<'_>, stride: u32, places: &mut [u32]) {
    macro_rules! add {
        ($row:ident => $step:expr) => {
            match key.validity {
                None => places.iter_mut().enumerate().for_each(|($row, place)| *place += stride * $step),
                Some(validity) => validity.ones().for_each(|$row| places[$row] += stride * $step),
            }
        };
    }
    // From where numbers are counted: NULL's place is before the first one.
    let first = match domain {
        Domain::Span { low, .. } => *low - 1,
        _ => 0,
    };
    macro_rules! integers {
        ($values:expr) => {{
            let first = first as u64;
            add!(row => ($values[row] as u64).wrapping_sub(first) as u32)
        }};
    }
    match key.form {
        Form::Null | Form::Nested(_) => {}
        Form::Constant(one) => {
            let step = match scalar_at(one, 0) {
                Scalar::Int(value) => (value - first) as u32,
                _ => 1,
            };
            add!(_row => step);
        }
        Form::Truth(bits) => add!(row => (i128::from(bits.get(row)) - first) as u32),
        Form::Codes(codes, _) => each_narrow!(codes, codes => add!(row => into_u32(codes[row]) + 1)),
        Form::BaseDelta(base, deltas) => {
            let step = (base - first) as u32;
            each_narrow!(deltas, deltas => add!(row => into_u32(deltas[row]) + step));
        }
        Form::Flat(values) => match values {
            Values::I8(values) => integers!(values),
            Values::I16(values) => integers!(values),
            Values::I32(values) => integers!(values),
            Values::I64(values) => integers!(values),
            Values::I128(values) => integers!(values),
            Values::U8(values) => integers!(values),
            Values::U16(values) => integers!(values),
            Values::U32(values) => integers!(values),
            Values::U64(values) => integers!(values),
            Values::F32(_) | Values::F64(_) | Values::Bytes(_) => {}
        },
    }
}

fn into_u32(number: impl Into<u32>) -> u32 {
    number.into()
}
