//! Giving the file's free end back to the operating system while the store is open.
//!
//! Free is what neither header copy, nor the map below it, nor a log that is kept can name; what one of them may name is
//! retired, and stands in the way. So the cut needs no order with the syncs around it. It happens under the lock under
//! which the file grows, and whoever reads where a page was before finds that the page is elsewhere.

use super::pages::growth_units;
use super::{Mode, Store};
use crate::error::{Result, failed};
use crate::ids::UNIT_BYTES;

/// As much as is cut at once, 64 MiB: the operating system drops what it has cached of it, and whoever commits waits.
const CUT_UNITS_MAX: u64 = (64 << 20) / UNIT_BYTES as u64;

impl Store {
    /// Cuts the file if more is free at its end than it would grow by next: so a file that has just grown stays, and
    /// what a large delete left goes. A cut that fails is no harm; the next checkpoint tries again.
    ///
    /// To be called by who has the checkpoint's turn, and a store that is open.
    pub(super) fn cut_where_due(&self) {
        let (end, used_end) = {
            let table = self.pages();
            (table.space.end(), table.space.used_end())
        };
        if end - used_end > growth_units(used_end) {
            let _ = self.cut_free_end();
        }
    }

    /// Cuts off all that is free at the file's end. To be called as [`Store::cut_where_due`].
    pub(super) fn cut_free_end(&self) -> Result<()> {
        while self.mode == Mode::Durable && self.poisoned().is_none() {
            let mut table = self.pages_mut();
            let (end, end_min) = (table.space.end(), table.space.used_end().max(table.named_end));
            if end <= end_min {
                break;
            }
            let cut_to = end_min.max(end.saturating_sub(CUT_UNITS_MAX));
            let cut = self.data.set_length(cut_to * UNIT_BYTES as u64);
            cut.map_err(failed(&self.path, "cutting the file"))?;
            table.space.cut_to(cut_to);
        }
        Ok(())
    }
}
