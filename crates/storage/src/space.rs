//! Which units of the file are free. Nothing of this is on disk: it is what the page map leaves over.
//!
//! Best fit, lowest place first among equals, and first of all among the places at which everything would be if nothing
//! were free between: so the file's end stays or becomes free, and can be cut off. A place that a
//! checkpoint or a log may still need is *retired* first: it carries the number of the log during which it was freed,
//! and returns when no valid header and no kept log reaches back that far.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{CheckpointNumber, Extent};

/// Invariants: free runs neither overlap nor touch; `by_size` mirrors `free`; every free run lies within `first..end`.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    free: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    free_units: u64,
    retired: BTreeMap<CheckpointNumber, Vec<Extent>>,
    retired_units: u64,
    end: u64,
}

/// Why an extent cannot be reserved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// It reaches over the end of the file.
    OutOfRange,
    /// Something else is there already.
    Overlap,
}

impl Space {
    /// All units of `first..end` are free.
    pub(crate) fn new(first: u64, end: u64) -> Space {
        let mut space = Space {
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
            free_units: 0,
            retired: BTreeMap::new(),
            retired_units: 0,
            end: first,
        };
        space.extend_to(end.max(first));
        space
    }

    /// Units in the file.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The unit after the last that is not free.
    pub(crate) fn used_end(&self) -> u64 {
        match self.free.last_key_value() {
            Some((&place, &units)) if place + units == self.end => place,
            _ => self.end,
        }
    }

    pub(crate) fn free_units(&self) -> u64 {
        self.free_units
    }

    /// Free units before `end`.
    pub(crate) fn free_units_below(&self, end: u64) -> u64 {
        self.free.range(..end).map(|(&place, &units)| units.min(end - place)).sum()
    }

    pub(crate) fn retired_units(&self) -> u64 {
        self.retired_units
    }

    /// The file has grown; the new units are free.
    pub(crate) fn extend_to(&mut self, end: u64) {
        if end > self.end {
            let grown = Extent { place: self.end, units: end - self.end };
            self.end = end;
            self.release(grown);
        }
    }

    /// The file is cut. All units from `end` on are free.
    pub(crate) fn cut_to(&mut self, end: u64) {
        debug_assert!(self.used_end() <= end && end <= self.end);
        if let Some((&place, &units)) = self.free.last_key_value().filter(|_| end < self.end) {
            self.remove_run(place, units);
            if place < end {
                self.insert_run(place, end - place);
            }
            self.end = end;
        }
    }

    /// The smallest free run that is large enough, or `None`.
    pub(crate) fn allocate(&mut self, units: u64) -> Option<Extent> {
        self.allocate_below(units, self.end - self.free_units).or_else(|| self.allocate_below(units, self.end))
    }

    /// The same, of the runs whose first units are below `end`.
    pub(crate) fn allocate_below(&mut self, units: u64, end: u64) -> Option<Extent> {
        let mut run_units_min = units;
        loop {
            // The lowest of the runs of one size: if it is too high, all of them are.
            let &(run_units, place) = self.by_size.range((run_units_min, 0)..).next()?;
            if place + units <= end {
                self.remove_run(place, run_units);
                if run_units > units {
                    self.insert_run(place + units, run_units - units);
                }
                return Some(Extent { place, units });
            }
            run_units_min = run_units + 1;
        }
    }

    /// Takes this very extent, if it is free as a whole.
    pub(crate) fn reserve(&mut self, extent: Extent) -> Result<(), Conflict> {
        if extent.units == 0 || extent.end() > self.end {
            return Err(Conflict::OutOfRange);
        }
        let (&place, &units) = self.free.range(..=extent.place).next_back().ok_or(Conflict::Overlap)?;
        if place + units < extent.end() {
            return Err(Conflict::Overlap);
        }
        self.remove_run(place, units);
        if place < extent.place {
            self.insert_run(place, extent.place - place);
        }
        if extent.end() < place + units {
            self.insert_run(extent.end(), place + units - extent.end());
        }
        Ok(())
    }

    /// Gives an extent back that nothing on disk names.
    pub(crate) fn release(&mut self, extent: Extent) {
        debug_assert!(extent.units > 0 && extent.end() <= self.end);
        let Extent { mut place, mut units } = extent;
        if let Some((&before, &before_units)) = self.free.range(..place).next_back() {
            debug_assert!(before + before_units <= place, "released twice: {extent:?}");
            if before + before_units == place {
                self.remove_run(before, before_units);
                place = before;
                units += before_units;
            }
        }
        if let Some((&after, &after_units)) = self.free.range(place + 1..).next() {
            debug_assert!(place + units <= after, "released twice: {extent:?}");
            if place + units == after {
                self.remove_run(after, after_units);
                units += after_units;
            }
        }
        self.insert_run(place, units);
    }

    /// Gives an extent up that a checkpoint or log up to number `during` may name.
    pub(crate) fn retire(&mut self, extent: Extent, during: CheckpointNumber) {
        self.retired_units += extent.units;
        self.retired.entry(during).or_default().push(extent);
    }

    /// Nothing older than `oldest` is needed any more: what was retired before returns.
    pub(crate) fn release_retired_before(&mut self, oldest: CheckpointNumber) {
        let kept = self.retired.split_off(&oldest);
        for extent in std::mem::replace(&mut self.retired, kept).into_values().flatten() {
            self.retired_units -= extent.units;
            self.release(extent);
        }
    }

    fn insert_run(&mut self, place: u64, units: u64) {
        self.free.insert(place, units);
        self.by_size.insert((units, place));
        self.free_units += units;
    }

    fn remove_run(&mut self, place: u64, units: u64) {
        self.free.remove(&place);
        self.by_size.remove(&(units, place));
        self.free_units -= units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(place: u64, units: u64) -> Extent {
        Extent { place, units }
    }

    #[test]
    fn the_best_fit_is_taken_and_neighbours_are_merged() {
        let mut space = Space::new(2, 100);
        let a = space.allocate(10).unwrap();
        let b = space.allocate(5).unwrap();
        let c = space.allocate(3).unwrap();
        assert_eq!((a, b, c), (extent(2, 10), extent(12, 5), extent(17, 3)));
        space.release(b);
        assert_eq!(space.allocate(4), Some(extent(12, 4)));
        space.release(a);
        space.release(extent(12, 4));
        space.release(c);
        assert_eq!(space.allocate(98), Some(extent(2, 98)));
        assert_eq!(space.allocate(1), None);
    }

    #[test]
    fn overlaps_and_places_beyond_the_file_are_refused() {
        let mut space = Space::new(2, 100);
        space.reserve(extent(50, 10)).unwrap();
        assert_eq!(space.reserve(extent(59, 1)), Err(Conflict::Overlap));
        assert_eq!(space.reserve(extent(45, 6)), Err(Conflict::Overlap));
        assert_eq!(space.reserve(extent(0, 1)), Err(Conflict::Overlap));
        assert_eq!(space.reserve(extent(99, 2)), Err(Conflict::OutOfRange));
        assert_eq!(space.reserve(extent(u64::MAX, u64::MAX)), Err(Conflict::OutOfRange));
        space.reserve(extent(60, 40)).unwrap();
        assert_eq!((space.free_units(), space.used_end()), (48, 100));
    }

    #[test]
    fn what_is_retired_returns_when_nothing_needs_it() {
        let mut space = Space::new(0, 10);
        let all = space.allocate(10).unwrap();
        space.retire(all, CheckpointNumber(3));
        space.release_retired_before(CheckpointNumber(3));
        assert_eq!((space.allocate(1), space.retired_units()), (None, 10));
        space.release_retired_before(CheckpointNumber(4));
        assert_eq!(space.allocate(10), Some(all));
    }

    #[test]
    fn the_end_is_used_last_and_can_be_cut() {
        let mut space = Space::new(0, 100);
        for unit in [3, 9] {
            space.reserve(extent(0, 90)).unwrap();
            space.release(extent(10, unit));
            space.release(extent(50, 3));
            // Were nothing free, the file would end at about 80.
            space.reserve(extent(98, 2)).unwrap();
            space.release(extent(60, 20));
            space.reserve(extent(95, 2)).unwrap();
            assert_eq!(space.allocate(1), Some(extent(if unit == 3 { 10 } else { 50 }, 1)));
            assert_eq!(space.allocate_below(10, 65), None);
            assert_eq!(space.allocate_below(10, 70), Some(extent(60, 10)));
            space = Space::new(0, 100);
        }
        space.reserve(extent(0, 40)).unwrap();
        space.cut_to(70);
        assert_eq!((space.end(), space.free_units(), space.used_end()), (70, 30, 40));
        space.cut_to(40);
        assert_eq!((space.end(), space.free_units(), space.allocate(1)), (40, 0, None));
        space.extend_to(42);
        assert_eq!(space.allocate(2), Some(extent(40, 2)));
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_bitmap(steps in proptest::collection::vec((0u8..3, 0u64..64, 1u64..9), 1..200)) {
            let mut space = Space::new(0, 64);
            let mut used = [false; 64];
            let mut taken = Vec::new();
            for (step, place, units) in steps {
                match step {
                    0 => if let Some(extent) = space.allocate(units) {
                        for unit in extent.place..extent.end() {
                            proptest::prop_assert!(!std::mem::replace(&mut used[unit as usize], true));
                        }
                        taken.push(extent);
                    },
                    1 => {
                        let fits = place + units <= 64 && !used[place as usize..(place + units) as usize].contains(&true);
                        proptest::prop_assert_eq!(space.reserve(extent(place, units)).is_ok(), fits);
                        if fits {
                            used[place as usize..(place + units) as usize].fill(true);
                            taken.push(extent(place, units));
                        }
                    }
                    _ => if !taken.is_empty() {
                        let extent = taken.swap_remove(place as usize % taken.len());
                        used[extent.place as usize..extent.end() as usize].fill(false);
                        space.release(extent);
                    },
                }
                let free = used.iter().filter(|unit| !**unit).count() as u64;
                proptest::prop_assert_eq!(space.free_units(), free);
                let used_end = used.iter().rposition(|unit| *unit).map_or(0, |unit| unit as u64 + 1);
                proptest::prop_assert_eq!(space.used_end(), used_end);
            }
        }
    }
}
