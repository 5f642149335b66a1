//! Groups by position: where each key of a vector is one of few, a row's place in an array says its group.
//!
//! A place is made of what stands in the vector: codes of its dictionaries, distances from the least number. It means
//! nothing elsewhere, so places are forgotten when another dictionary comes or numbers lie elsewhere, and the groups of
//! places not met yet are found by their keys. One row group's vectors mostly share their dictionaries.

use crate::aggregate::{Argument, Form};
use crate::dispatch::each_narrow;
use crate::vector::scalar_at;
use sinter_codec::{
    Bitmap, GROUPS_FEW, NO_GROUP, Scalar, Values, bounds_of, count_by_group, replace_unmarked, update_rows,
};

/// Places, at most. They are cleared when a dictionary changes, and should stay in the cache.
const PLACES_MAX: usize = 1 << 14;

/// A place that was not met yet; no group has this number.
const UNKNOWN: u32 = u32::MAX;

/// Places that a byte can tell apart.
const PLACES_SMALL_MAX: usize = 1 << u8::BITS;

/// Places that rows are compared with one after the other, at most.
const KNOWN_MAX: usize = 2 * GROUPS_FEW;

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
    /// Places that were met, with their groups; no more than [`KNOWN_MAX`].
    known: Vec<(u32, u32)>,
    /// By row of the vector.
    places: Vec<u32>,
    /// The same where there are few.
    small_places: Vec<u8>,
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
            known: Vec::new(),
            places: Vec::new(),
            small_places: Vec::new(),
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
        let Some(places) = self.widen(keys) else {
            self.count(true);
            return false;
        };
        if self.groups.is_empty() {
            // With a power of two no place needs a check.
            self.groups.resize(places.next_power_of_two(), UNKNOWN);
        }
        add_all_places(&self.domains, keys, rows, &mut self.places);
        true
    }

    /// Makes the domains hold the keys of a vector, and returns how many places there are then; `None` where they are too
    /// many.
    fn widen(&mut self, keys: &[Argument<'_>]) -> Option<usize> {
        for (domain, key) in self.domains.iter_mut().zip(keys) {
            if let Some(wider) = widened(domain, key)? {
                *domain = wider;
                // Places mean something else now.
                self.groups.clear();
                self.known.clear();
            }
        }
        let places = self.domains.iter().try_fold(1usize, |places, domain| {
            let places = places.saturating_mul(domain.len());
            (places <= PLACES_MAX).then_some(places)
        });
        if places.is_none() {
            // Perhaps it was only that one vector lies far from the others.
            self.domains.fill(Domain::Nothing);
            self.groups.clear();
            self.known.clear();
        }
        places
    }

    /// Writes the groups of the placed rows over `out`; false where one is not known.
    pub(super) fn find(&mut self, out: &mut Vec<u32>) -> bool {
        out.clear();
        let groups = &self.groups[..];
        let mask = groups.len() - 1;
        out.extend(self.places.iter().map(|&place| groups[place as usize & mask]));
        let is_known = bounds_of(Values::U32(out)).is_none_or(|(_, greatest)| greatest != UNKNOWN.into());
        self.count(!is_known);
        is_known
    }

    /// Places and finds the rows that are alive, where there are so few groups that places can be compared instead of looked
    /// up. Writes groups over `out`, [`NO_GROUP`] for dead rows, and how many rows each has over `counts`; false, and nothing
    /// of use in either, where one is not known.
    pub(super) fn find_few(
        &mut self,
        keys: &[Argument<'_>],
        rows: usize,
        alive: Option<&Bitmap>,
        out: &mut Vec<u8>,
        counts: &mut [u64],
    ) -> bool {
        let is_small = self.is_worth_it && self.widen(keys).is_some_and(|places| places <= PLACES_SMALL_MAX);
        if !is_small || !self.knows_few() {
            return false;
        }
        add_all_places(&self.domains, keys, rows, &mut self.small_places);
        out.clear();
        out.resize(rows, NO_GROUP);
        for &(place, group) in &self.known {
            let (place, group) = (place as u8, group as u8);
            update_rows(out, &self.small_places, move |known, of: u8| if of == place { group } else { known });
        }
        if let Some(alive) = alive {
            replace_unmarked(out, alive, NO_GROUP);
        }
        counts.fill(0);
        count_by_group(out, counts);
        let is_known = counts.iter().sum::<u64>() == alive.map_or(rows, Bitmap::count_ones) as u64;
        if is_known {
            self.count(false);
        }
        is_known
    }

    /// Takes over the groups of the placed rows.
    pub(super) fn learn(&mut self, groups: &[u32]) {
        for (&place, &group) in self.places.iter().zip(groups) {
            let known = &mut self.groups[place as usize];
            if *known == UNKNOWN && self.known.len() < KNOWN_MAX {
                self.known.push((place, group));
            }
            *known = group;
        }
    }

    /// Whether places have been met that are so few that rows can be compared with one after the other.
    pub(super) fn knows_few(&self) -> bool {
        let is_small = self.groups.len() <= PLACES_SMALL_MAX;
        self.is_worth_it && is_small && !self.known.is_empty() && self.known.len() < KNOWN_MAX
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
            let greatest = bounds_of(codes.as_values()).map_or(0, |(_, greatest)| greatest as usize);
            match domain {
                _ if greatest >= len || len >= PLACES_MAX => None,
                Domain::Dictionary { id: known, .. } if *known == id => Some(None),
                _ => Some(Some(Domain::Dictionary { id, len })),
            }
        }
        Form::BaseDelta(base, deltas) => {
            let greatest = bounds_of(deltas.as_values()).map_or(0, |(_, greatest)| greatest);
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

/// The least and the greatest of plain integers that are present; `None` for other types.
fn bounds(values: Values<'_>, validity: Option<&Bitmap>) -> Option<(i128, i128)> {
    let Some(validity) = validity else { return bounds_of(values) };
    macro_rules! integers {
        ($values:expr) => {{
            let present = || validity.ones().map(|row| $values[row]);
            (present().min()?.into(), present().max()?.into())
        }};
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

/// A place in as many bits as all places need. What is added may wrap: what comes out in the end fits.
trait Place: Copy + Default {
    fn add(self, stride: u32, number: u32) -> Self;
}

impl Place for u8 {
    #[inline(always)]
    fn add(self, stride: u32, number: u32) -> u8 {
        self.wrapping_add((stride as u8).wrapping_mul(number as u8))
    }
}

impl Place for u32 {
    #[inline(always)]
    fn add(self, stride: u32, number: u32) -> u32 {
        self.wrapping_add(stride.wrapping_mul(number))
    }
}

/// Writes the places of a vector's rows over `places`.
fn add_all_places<P: Place>(domains: &[Domain], keys: &[Argument<'_>], rows: usize, places: &mut Vec<P>) {
    places.clear();
    places.resize(rows, P::default());
    let mut stride = 1;
    for (domain, key) in domains.iter().zip(keys) {
        add_places(domain, key, stride, places);
        stride *= domain.len() as u32;
    }
}

/// Adds to each row's place what one key contributes. NULL's is 0, whatever value stands beside it.
fn add_places<P: Place>(domain: &Domain, key: &Argument<'_>, stride: u32, places: &mut [P]) {
    macro_rules! add {
        ($row:ident => $step:expr) => {
            match key.validity {
                None => places.iter_mut().enumerate().for_each(|($row, place)| *place = place.add(stride, $step)),
                Some(validity) => validity.ones().for_each(|$row| places[$row] = places[$row].add(stride, $step)),
            }
        };
    }
    macro_rules! add_numbers {
        ($numbers:expr, $number:ident => $step:expr) => {
            match key.validity {
                None => update_rows(places, $numbers, move |place, $number| place.add(stride, $step)),
                Some(validity) => validity.ones().for_each(|row| {
                    let $number = $numbers[row];
                    places[row] = places[row].add(stride, $step);
                }),
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
            // Only the lower bits of the distance are needed: it is small.
            let first = first as u32;
            add_numbers!($values, value => (value as u32).wrapping_sub(first))
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
        Form::Codes(codes, _) => each_narrow!(codes, codes => add_numbers!(codes, code => into_u32(code) + 1)),
        Form::BaseDelta(base, deltas) => {
            let step = (base - first) as u32;
            each_narrow!(deltas, deltas => add_numbers!(deltas, delta => into_u32(delta).wrapping_add(step)));
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
