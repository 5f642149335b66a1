//! Each scheme beside its peers: bytes for each value, encoding and decoding.

mod marks;
mod measure;
pub mod memory;
mod points;

use crate::Failure;
use crate::codec::{Entrant, Kin};
use crate::mark::Mark;
use crate::peers;
use crate::race::Effort;
use crate::sinter::Sinter;
use measure::{Measured, measure};
use serde_json::{Value, json};
use sinter_codec::SCHEMES;

pub use measure::{check, plain_bytes, room_for_vector};

/// What all contenders made of one point.
pub struct Outcome {
    /// The scheme.
    pub scheme: &'static str,
    /// The type of the values.
    pub type_name: &'static str,
    /// What is in the values.
    pub kind: String,
    /// Bits of a packed number, as a rule.
    pub width: u32,
    /// Ours first.
    pub measured: Vec<Measured>,
}

impl Outcome {
    /// What ours made of it.
    pub fn ours(&self) -> &Measured {
        &self.measured[0]
    }

    /// Which point it is.
    pub fn place(&self) -> String {
        format!("{} {}, {}", self.type_name, self.width, self.kind)
    }

    fn record(&self) -> Value {
        json!({
            "scheme": self.scheme, "type": self.type_name, "kind": self.kind, "width": self.width,
            "contenders": self.measured.iter().map(Measured::record).collect::<Vec<_>>(),
        })
    }
}

/// Measures, prints, and returns the record. With names, only those schemes.
///
/// # Errors
/// Where a contender does not give back what it got.
pub fn run(only: &[String], effort: Effort) -> Result<Value, Failure> {
    println!("Schemes in the L2 cache: B/value, encode / decode in GB/s of plain values, the best of all samples;");
    println!("* is a block that is decoded as a whole only, others vector by vector or as a whole, whatever is faster");
    let mut outcomes = Vec::new();
    let names = SCHEMES.iter().map(|entry| entry.name);
    for scheme in names.filter(|scheme| only.is_empty() || only.iter().any(|name| name == scheme)) {
        let mut heading = None;
        let points = points::of_scheme(scheme, effort.is_quick);
        if points.is_empty() {
            return Err(format!("{scheme} has no values to be measured with: points.rs wants some").into());
        }
        for point in points {
            eprintln!("{scheme}: {}, {} {}", point.physical().name(), point.kind, point.width);
            let mut entrants = vec![Entrant::ours(Sinter::new(point.request()))];
            entrants.extend(peers::beside(scheme, point.physical()));
            let measured = measure(entrants, &point.values, effort)?;
            if measured.first().is_none_or(|first| first.kin != Kin::Ours) {
                return Err(format!("{scheme} cannot hold {}", point.kind).into());
            }
            let type_name = point.physical().name();
            let outcome = Outcome { scheme, type_name, kind: point.kind, width: point.width, measured };
            let this = (type_name, outcome.kind.clone());
            if heading.as_ref() != Some(&this) {
                print_heading(&outcome);
                heading = Some(this);
            }
            print_line(&outcome);
            outcomes.push(outcome);
        }
    }
    println!("\nMarks (beside a peer: its time or size divided by ours, so that more than 1 is ahead)");
    let marks = marks::judge(&outcomes);
    marks.iter().for_each(|mark| println!("{}", mark.line()));
    Ok(json!({
        "cache": outcomes.iter().map(Outcome::record).collect::<Vec<_>>(),
        "marks": marks.iter().map(Mark::record).collect::<Vec<_>>(),
    }))
}

fn print_heading(outcome: &Outcome) {
    println!("\n{} of {}, {}", outcome.scheme, outcome.type_name, outcome.kind);
    print!("{:>5}", "width");
    outcome.measured.iter().for_each(|measured| print!("  {:>19}", measured.name));
    println!();
}

fn print_line(outcome: &Outcome) {
    print!("{:>5}", outcome.width);
    for measured in &outcome.measured {
        let (encode, decode) = (measured.gigabytes(measured.encode), measured.gigabytes(measured.decode()));
        let star = if measured.vectors.is_none() { '*' } else { ' ' };
        print!("  {:>6.3}{encode:>6.2}/{decode:>5.1}{star}", measured.bytes_per_value);
    }
    println!();
}
