//! Codecs of sorted keys: figures 6 and 7 of the Upscaledb paper (Lemire and Rupp, Information Systems 66, 2017, section
//! 4.2). Its library is not to be had here; beside ours stand crates that pack blocks of keys and can only be asked for all.

mod measure;
pub mod memory;
mod peers;

use crate::Failure;
use crate::mark::Mark;
use crate::race::Effort;
use measure::{BLOCKS, Figures, OfPeer, measure, measure_peers};
use serde_json::{Value, json};
use sinter_codec::{KEY_CODECS, KEYS_MAX, KeyCodec};

/// Bits of the numbers whose sums are keys, up to the paper's greatest.
const BITS_OF_U32: [u32; 24] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24];
const BITS_OF_U32_QUICK: [u32; 3] = [1, 8, 20];
const BITS_OF_U64: [u32; 6] = [8, 16, 24, 32, 40, 48];
const BITS_OF_U64_QUICK: [u32; 2] = [8, 32];

/// Codecs, then what decoding should give in 1e9 keys a second, and what selecting a key by its index and looking for one
/// may take in nanoseconds: of `u32` and at every width.
const MARKS: [(KeyCodec, Option<f64>, f64, f64); 5] = [
    (KeyCodec::For, None, 8.0, 20.0),
    (KeyCodec::SimdFor, None, 8.0, 20.0),
    (KeyCodec::Bp128D1, Some(6.0), 30.0, 45.0),
    (KeyCodec::Bp128D4, Some(8.5), 30.0, 45.0),
    (KeyCodec::Bp128Transposed, Some(8.0), 30.0, 45.0),
];

/// Bits of a key that the transposed form may take more than `bp128_d1`.
const TRANSPOSED_BITS_MORE: f64 = 0.4;

/// What the paper says of its own code, in words: the figures have no numbers.
const THEIRS: &str = "theirs (Core i7-4770, 3.4 GHz): best of decoding 7e9 a second by SIMD FOR, half of it by BP128, half of \
                      that by most others, 1e9 by VByte; inserting where it lies several times as fast as decoding and \
                      encoding; VByte slow in finding, the others within a factor of two, VarIntGB first";

/// One codec, type and width.
struct Outcome {
    codec: KeyCodec,
    type_name: &'static str,
    bits: u32,
    figures: Figures,
}

/// Measures, prints, and returns the record. With names, only those codecs.
///
/// # Errors
/// Where an answer is wrong.
pub fn run(only: &[String], effort: Effort) -> Result<Value, Failure> {
    println!(
        "\n{BLOCKS} blocks of {KEYS_MAX} keys, sums of numbers of up to so many bits, in cache. Bytes of a key; encoding"
    );
    println!(
        "and decoding in 1e9 keys a second; then nanoseconds: the key at an index and the first not less than another,"
    );
    println!(
        "of blocks opened for it; a key appended, inserted in random order, the same by decoding and encoding, and"
    );
    println!("deleted in random order.");
    let columns = ["B/key", "encode", "decode", "select", "bound", "append", "insert", "(encode)", "delete"];
    print!("{:<17} {:<4} {:>4}", "codec", "type", "bits");
    columns.iter().for_each(|column| print!(" {column:>8}"));
    println!();
    let bits_of_u32: &[u32] = if effort.is_quick { &BITS_OF_U32_QUICK } else { &BITS_OF_U32 };
    let bits_of_u64: &[u32] = if effort.is_quick { &BITS_OF_U64_QUICK } else { &BITS_OF_U64 };
    let mut outcomes = Vec::new();
    let is_asked = |codec: &&KeyCodec| only.is_empty() || only.iter().any(|name| name == codec.name());
    for &codec in KEY_CODECS.iter().filter(is_asked) {
        eprintln!("keys: {}", codec.name());
        for &bits in bits_of_u32 {
            outcomes.push(Outcome { codec, type_name: "u32", bits, figures: measure::<u32>(codec, bits, effort)? });
        }
        for &bits in bits_of_u64 {
            outcomes.push(Outcome { codec, type_name: "u64", bits, figures: measure::<u64>(codec, bits, effort)? });
        }
        outcomes.iter().filter(|outcome| outcome.codec == codec).for_each(Outcome::print);
    }
    let mut peers = Vec::new();
    eprintln!("keys: peers");
    for &bits in bits_of_u32 {
        peers.push((bits, measure_peers(bits, effort)?));
    }
    for index in 0..peers.first().map_or(0, |(_, of_peers)| of_peers.len()) {
        peers.iter().for_each(|(bits, of_peers)| print_peer(*bits, &of_peers[index]));
    }
    println!("{THEIRS}");
    let marks: Vec<Mark> = judge(&outcomes).into_iter().chain(beside_peers(&outcomes, &peers)).collect();
    println!("\nMarks");
    marks.iter().for_each(|mark| println!("{}", mark.line()));
    Ok(json!({
        "theirs": THEIRS,
        "outcomes": outcomes.iter().map(Outcome::record).collect::<Vec<_>>(),
        "peers": peers.iter().flat_map(|(bits, of_peers)| of_peers.iter().map(|peer| record_of_peer(*bits, peer))).collect::<Vec<_>>(),
        "marks": marks.iter().map(Mark::record).collect::<Vec<_>>(),
    }))
}

fn judge(outcomes: &[Outcome]) -> Vec<Mark> {
    let of_codec = |codec: KeyCodec, figure: fn(&Figures) -> f64| {
        let of_codec = outcomes.iter().filter(move |outcome| outcome.codec == codec && outcome.type_name == "u32");
        of_codec.map(move |outcome| (outcome.place(), figure(&outcome.figures)))
    };
    let mut marks = Vec::new();
    for (codec, decode, select, lower_bound) in MARKS {
        let name = codec.name();
        if let Some(mark) = decode {
            let figures = of_codec(codec, |figures| figures.decode);
            marks.extend(Mark::at_least(
                format!("decoding u32 by {name}, 1e9 keys a second, at least {mark}"),
                mark,
                figures,
            ));
        }
        let figures = of_codec(codec, |figures| figures.select);
        marks.extend(Mark::at_most(format!("select by {name}, ns, at most {select}"), select, figures));
        let figures = of_codec(codec, |figures| figures.lower_bound);
        marks.extend(Mark::at_most(format!("lower bound by {name}, ns, at most {lower_bound}"), lower_bound, figures));
    }
    let of_d1: Vec<(String, f64)> = of_codec(KeyCodec::Bp128D1, |figures| figures.bytes_per_key).collect();
    let of_transposed = of_codec(KeyCodec::Bp128Transposed, |figures| figures.bytes_per_key);
    let more = of_transposed.zip(&of_d1).map(|((place, ours), (_, d1))| (place, 8.0 * (ours - d1)));
    let text = format!("bits of bp128_transposed more than bp128_d1, at most {TRANSPOSED_BITS_MORE}");
    marks.extend(Mark::at_most(text, TRANSPOSED_BITS_MORE, more));
    marks
}

/// Ours and the peers of their family: bits after differences, and bytes after differences.
const FAMILIES: [(KeyCodec, &str); 3] = [
    (KeyCodec::Bp128D1, "crate bp128 d1"),
    (KeyCodec::Bp128D1, "crate bp256 d1"),
    (KeyCodec::VarintGb, "crate stream vbyte d1"),
];

/// Share of the widths at which ours should be ahead.
const AHEAD_SHARE: f64 = 0.90;

/// Ours as a multiple of a peer's speed, at each width.
fn beside_peers(outcomes: &[Outcome], peers: &[(u32, Vec<OfPeer>)]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (codec, name) in FAMILIES {
        let both = || {
            outcomes.iter().filter(move |ours| ours.codec == codec && ours.type_name == "u32").filter_map(move |ours| {
                let (_, of_peers) = peers.iter().find(|(bits, _)| *bits == ours.bits)?;
                Some((ours, of_peers.iter().find(|peer| peer.name == name)?))
            })
        };
        let encode = both().map(|(ours, peer)| (ours.place(), ours.figures.encode / peer.encode)).collect::<Vec<_>>();
        let decode = both().map(|(ours, peer)| (ours.place(), ours.figures.decode / peer.decode)).collect::<Vec<_>>();
        for (what, figures) in [("encoding", encode), ("decoding", decode)] {
            let mark = Mark::at_least(format!("{what}: {} ahead of {name}", codec.name()), 1.0, figures.into_iter());
            marks.extend(mark.map(|mark| {
                let is_met = mark.met.0 as f64 >= AHEAD_SHARE * mark.met.1 as f64;
                Mark { is_met, ..mark }
            }));
        }
    }
    marks
}

fn print_peer(bits: u32, peer: &OfPeer) {
    let OfPeer { name, bytes_per_key, encode, decode } = peer;
    println!("{name:<22} {bits:>4} {bytes_per_key:>8.3} {encode:>8.2} {decode:>8.2}");
}

fn record_of_peer(bits: u32, peer: &OfPeer) -> Value {
    json!({
        "name": peer.name, "type": "u32", "bits": bits, "bytes_per_key": peer.bytes_per_key,
        "encode_e9_per_s": peer.encode, "decode_e9_per_s": peer.decode,
    })
}

impl Outcome {
    fn place(&self) -> String {
        format!("{} of {} bits", self.type_name, self.bits)
    }

    fn print(&self) {
        let Figures { bytes_per_key, encode, decode, select, lower_bound, append, insert, insert_by_encoding, delete } =
            self.figures;
        print!("{:<17} {:<4} {:>4}", self.codec.name(), self.type_name, self.bits);
        print!(" {bytes_per_key:>8.3} {encode:>8.2} {decode:>8.2}");
        for nanoseconds in [select, lower_bound, append, insert, insert_by_encoding, delete] {
            print!(" {nanoseconds:>8.1}");
        }
        println!();
    }

    fn record(&self) -> Value {
        let figures = &self.figures;
        json!({
            "codec": self.codec.name(), "type": self.type_name, "bits": self.bits,
            "bytes_per_key": figures.bytes_per_key,
            "encode_e9_per_s": figures.encode, "decode_e9_per_s": figures.decode,
            "select_ns": figures.select, "lower_bound_ns": figures.lower_bound, "append_ns": figures.append,
            "insert_ns": figures.insert, "insert_by_encoding_ns": figures.insert_by_encoding,
            "delete_ns": figures.delete,
        })
    }
}
