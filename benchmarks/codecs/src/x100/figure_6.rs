//! Figure 6: how compulsory exceptions raise the share of exceptions where codes have few bits.
//!
//! The paper's model of the share that results is max(E, (128 E - 1) / (128 E) / 2^b); beside it stands what the linked
//! list of the reference form comes to. What SinterDB ships links no exceptions, so it has none of these.

use super::skewed;
use crate::Failure;
use crate::reference::patch_list::{Form, LIST_LEN, Segment, VECTOR_LEN};
use serde_json::{Value, json};

const VALUE_COUNT: usize = 64 * 1024;

pub(super) fn run() -> Result<Value, Failure> {
    let shares = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];
    println!("\nFigure 6: share of exceptions with compulsory ones, model of the paper / measured");
    println!("(paper: from 0.01 on 0.47 with 1 bit, 0.22 with 2; of no weight from 5 bits on)");
    print!("{:>6}", "E");
    (1..=6).for_each(|bit_width| print!("  {bit_width:>9} bits"));
    println!();
    let mut records = Vec::new();
    for share in shares {
        print!("{share:>6}");
        for bit_width in 1..=6 {
            let values = skewed::around_base(VALUE_COUNT, share, bit_width);
            let mut segment = Segment::new(Form::Predicated, bit_width, skewed::base());
            segment.encode(&values);
            let mut out = [0; VECTOR_LEN];
            for (index, vector) in values.as_chunks::<VECTOR_LEN>().0.iter().enumerate() {
                segment.decode(index, &mut out);
                if out != *vector {
                    return Err("a list with compulsory exceptions does not give back the values".into());
                }
            }
            let of_list = share * LIST_LEN as f64;
            let model = share.max((of_list - 1.0) / of_list / f64::from(1 << bit_width));
            let measured = segment.exception_share();
            print!("  {model:>6.3}/{measured:>7.3}");
            records.push(json!({ "share": share, "bit_width": bit_width, "model": model, "measured": measured }));
        }
        println!();
    }
    Ok(records.into())
}
