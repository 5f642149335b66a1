//! Values of a dictionary by their codes.

use crate::fixed::{Fixed, Integer};
use crate::isa::each_isa;

each_isa! {
    /// Writes the value of each code; there are as many. `table` has a power of two of values, and codes are cut to that.
    pub(crate) fn look_up<T: Fixed, C: Integer>(table: &[T], codes: &[C], out: &mut [T]) = look_up_body;
}

#[inline(always)]
fn look_up_body<T: Fixed, C: Integer>(table: &[T], codes: &[C], out: &mut [T]) {
    assert!(table.len().is_power_of_two());
    // With this, the compiler knows that no index is beyond the table.
    let mask = table.len() - 1;
    for (slot, code) in out.iter_mut().zip(codes) {
        *slot = table[code.to_delta() as usize & mask];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    #[test]
    fn each_code_finds_its_value() {
        let table: Vec<i64> = (0..256).map(|i| i * 1_000_003).collect();
        let codes: Vec<u8> = (0..1000u32).map(|i| (i * 37) as u8).collect();
        forms(|isa| {
            let mut out = vec![0; codes.len()];
            look_up(&table, &codes, &mut out);
            assert!(out.iter().zip(&codes).all(|(value, code)| *value == table[usize::from(*code)]), "{isa}");
        });
    }
}
