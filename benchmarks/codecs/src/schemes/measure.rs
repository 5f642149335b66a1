//! Measures all contenders at one point, in the cache.

use crate::Failure;
use crate::codec::{Entrant, Kin, Opened};
use crate::race::{Effort, Run, Times, race};
use serde_json::{Value, json};
use sinter_codec::{VECTOR_LEN, Values, ValuesBuf};
use std::cell::RefCell;
use std::hint::black_box;

/// What one contender made of the values of one point.
pub struct Measured {
    /// Its place.
    pub kin: Kin,
    /// Its name.
    pub name: String,
    /// Bytes of its block for each value.
    pub bytes_per_value: f64,
    /// Of all values.
    pub encode: Times,
    /// Vector by vector into one buffer; `None` where a block can only be decoded as a whole.
    pub vectors: Option<Times>,
    /// All values into one buffer.
    pub whole: Times,
    /// Bytes of the plain values.
    pub plain_bytes: usize,
}

impl Measured {
    /// The faster way to all values.
    pub fn decode(&self) -> Times {
        self.vectors.filter(|vectors| vectors.min < self.whole.min).unwrap_or(self.whole)
    }

    /// In gigabytes (1e9) of plain values a second.
    pub fn gigabytes(&self, times: Times) -> f64 {
        self.plain_bytes as f64 / times.min.as_secs_f64() / 1e9
    }

    /// The measurement for programs.
    pub fn record(&self) -> Value {
        let median = |times: Times| self.plain_bytes as f64 / times.median.as_secs_f64() / 1e9;
        json!({
            "name": self.name,
            "bytes_per_value": self.bytes_per_value,
            "encode_gb_s": self.gigabytes(self.encode),
            "encode_gb_s_median": median(self.encode),
            "decode_vectors_gb_s": self.vectors.map(|times| self.gigabytes(times)),
            "decode_vectors_gb_s_median": self.vectors.map(median),
            "decode_whole_gb_s": self.gigabytes(self.whole),
            "decode_whole_gb_s_median": median(self.whole),
        })
    }
}

/// Bytes of values as their users hold them; of strings without their ends.
pub fn plain_bytes(values: Values<'_>) -> usize {
    match values {
        Values::Bytes(view) => view.data_bytes(),
        values => values.len() * values.physical().value_bytes().unwrap_or(0),
    }
}

/// Measures each of `entrants` that can hold `values`, in their order.
///
/// # Errors
/// Where one does not give back what it got.
pub fn measure(entrants: Vec<Entrant>, values: &ValuesBuf, effort: Effort) -> Result<Vec<Measured>, Failure> {
    let mut written = Vec::new();
    for mut entrant in entrants {
        let mut bytes = Vec::new();
        match entrant.codec.encode(values.as_values(), &mut bytes) {
            Ok(()) => written.push((entrant, bytes)),
            Err(error) => eprintln!("{} is left out: {error}", entrant.codec.name()),
        }
    }
    let mut opened = Vec::new();
    for (entrant, bytes) in &written {
        let block = entrant.codec.open(bytes, values.len())?;
        let name = entrant.codec.name();
        let has_vectors = check(&*block, &name, values)?;
        opened.push((name, block, has_vectors));
    }
    let (whole, vectors) = decode_times(&opened, values, effort);
    let plain_bytes = plain_bytes(values.as_values());
    let mut measured: Vec<Measured> = written
        .iter()
        .zip(opened)
        .zip(whole.into_iter().zip(vectors))
        .map(|(((entrant, bytes), (name, ..)), (whole, vectors))| Measured {
            kin: entrant.kin,
            name,
            bytes_per_value: bytes.len() as f64 / values.len() as f64,
            encode: whole,
            vectors,
            whole,
            plain_bytes,
        })
        .collect();
    let mut encodes: Vec<Run<'_>> = written
        .iter_mut()
        .map(|(entrant, bytes)| {
            let run = move || {
                bytes.clear();
                entrant.codec.encode(values.as_values(), bytes).expect("it did before");
                black_box(&*bytes);
            };
            Box::new(run) as Run<'_>
        })
        .collect();
    let times = race(&mut encodes, effort);
    measured.iter_mut().zip(times).for_each(|(measured, times)| measured.encode = times);
    Ok(measured)
}

type OpenedEntrant<'b> = (String, Box<dyn Opened + 'b>, bool);

/// Times of decoding as a whole, and of decoding by vectors where there is a way.
fn decode_times(opened: &[OpenedEntrant<'_>], values: &ValuesBuf, effort: Effort) -> (Vec<Times>, Vec<Option<Times>>) {
    let vector_count = values.len().div_ceil(VECTOR_LEN);
    // All write to the same memory: where it lies makes a difference.
    let out = RefCell::new(ValuesBuf::new(values.physical()));
    let vector_out = RefCell::new(room_for_vector(values));
    let (out, vector_out) = (&out, &vector_out);
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (_, block, _) in opened {
        runs.push(Box::new(move || {
            let out = &mut *out.borrow_mut();
            block.whole(out);
            black_box(&*out);
        }));
    }
    for (_, block, _) in opened.iter().filter(|(.., has_vectors)| *has_vectors) {
        runs.push(Box::new(move || {
            let out = &mut *vector_out.borrow_mut();
            for index in 0..vector_count {
                block.vector(index, out);
                black_box(&*out);
            }
        }));
    }
    let mut times = race(&mut runs, effort);
    let mut of_vectors = times.split_off(opened.len()).into_iter();
    (times, opened.iter().map(|(.., has_vectors)| if *has_vectors { of_vectors.next() } else { None }).collect())
}

/// A buffer for a vector, at the start of a cache line where one can be had.
pub fn room_for_vector(values: &ValuesBuf) -> ValuesBuf {
    const LINE_BYTES: usize = 64;
    let mut others = Vec::new();
    loop {
        let vector = values.as_values().slice(0..values.len().min(VECTOR_LEN)).to_buf();
        let is_aligned = match vector.as_values() {
            Values::Bytes(_) => true,
            plain => crate::bits::plain_bytes(plain).as_ptr().addr().is_multiple_of(LINE_BYTES),
        };
        if is_aligned || others.len() == LINE_BYTES {
            return vector;
        }
        // Kept, so that the next one lies elsewhere.
        others.push((vector, vec![0u8; 24 + 16 * (others.len() % 4)]));
    }
}

/// Compares what is decoded with what was encoded; says whether vectors can be decoded.
///
/// # Errors
/// Where they differ.
pub fn check(block: &dyn Opened, name: &str, values: &ValuesBuf) -> Result<bool, Failure> {
    if name.contains("transposed") {
        return Ok(true); // the same values in another order, that others check
    }
    let mut out = ValuesBuf::new(values.physical());
    block.whole(&mut out);
    if out != *values {
        return Err(format!("{name} does not give back the values").into());
    }
    let mut has_vectors = true;
    for (index, start) in (0..values.len()).step_by(VECTOR_LEN).enumerate() {
        has_vectors = block.vector(index, &mut out);
        if !has_vectors {
            break;
        }
        let expected = values.as_values().slice(start..values.len().min(start + VECTOR_LEN)).to_buf();
        if out != expected {
            return Err(format!("{name} does not give back vector {index}").into());
        }
    }
    Ok(has_vectors)
}
