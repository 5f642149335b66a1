//! What the figures should be at least, and where they are worst.

use super::Outcome;
use super::measure::Measured;
use super::points::{WITH_EXCEPTIONS, WITHOUT_EXCEPTIONS};
use crate::codec::Kin;
use crate::mark::Mark;

/// Share of the points at which ours should be ahead of a peer of the same family.
const AHEAD_SHARE: f64 = 0.90;

/// Encoding, GB/s of plain `u32` values at every width.
const ENCODE_GB_S: [(&str, f64); 5] = [("bitpack", 8.0), ("for", 8.0), ("pfor", 3.0), ("pdict", 1.5), ("dict", 1.5)];

/// Decoding with one value in twenty an exception, as part of decoding without.
const EXCEPTIONS_SHARE: f64 = 0.70;

/// Decoding of ascending `u32`, in 1e9 numbers a second, where the block is no larger than BP128's.
const DELTAS_PER_SECOND: f64 = 6.0;

/// Bits that a delta may take more than with BP128: a quarter for an entry point at every 128th value, which BP128 has not
/// (`keys` has it as it is), and a little for what a block tells about its values.
const DELTA_BITS_MORE: f64 = 0.27;

/// Deltas of a block from which that is asked for.
const DELTA_COUNT_MIN: usize = 64 * 1024;

/// All marks that these outcomes tell something about.
pub fn judge(outcomes: &[Outcome]) -> Vec<Mark> {
    let mut marks = ahead_of_peers(outcomes);
    for (scheme, mark) in ENCODE_GB_S {
        let of_scheme = outcomes.iter().filter(|outcome| outcome.scheme == scheme && outcome.type_name == "u32");
        let figures = of_scheme.map(|outcome| (outcome.place(), outcome.ours().gigabytes(outcome.ours().encode)));
        marks.extend(Mark::at_least(format!("encoding u32 by {scheme}, GB/s, at least {mark}"), mark, figures));
    }
    marks.extend(Mark::at_least(
        format!("decoding by pfor with 5 % exceptions, part of without, {EXCEPTIONS_SHARE}"),
        EXCEPTIONS_SHARE,
        with_exceptions(outcomes).into_iter(),
    ));
    let speeds = deltas(outcomes, |ours, _| ours.gigabytes(ours.decode()) / 4.0);
    let text = format!("decoding u32 by delta, 1e9 numbers a second, {DELTAS_PER_SECOND}");
    marks.extend(Mark::at_least(text, DELTAS_PER_SECOND, speeds));
    let saved = deltas(outcomes, |ours, peer| 8.0 * (peer.bytes_per_value - ours.bytes_per_value));
    let text = format!("bits that u32 by delta saves beside BP128 d1, -{DELTA_BITS_MORE}");
    marks.extend(Mark::at_least(text, -DELTA_BITS_MORE, saved));
    marks
}

/// For each scheme and peer of its family: the share of points at which ours is as fast, encoding and decoding apart.
fn ahead_of_peers(outcomes: &[Outcome]) -> Vec<Mark> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for outcome in outcomes {
        for peer in outcome.measured.iter().filter(|measured| measured.kin == Kin::Family) {
            if !pairs.contains(&(outcome.scheme, &peer.name)) {
                pairs.push((outcome.scheme, &peer.name));
            }
        }
    }
    let mut marks = Vec::new();
    for (scheme, peer) in pairs {
        let both = || {
            outcomes.iter().filter(move |outcome| outcome.scheme == scheme).filter_map(move |outcome| {
                // Beside values of another type the same peer may be there to be looked at only, as pco is beside integers.
                let of_family = |measured: &&Measured| measured.kin == Kin::Family && measured.name == peer;
                Some((outcome, outcome.ours(), outcome.measured.iter().find(of_family)?))
            })
        };
        let speed_up = |peer: std::time::Duration, ours: std::time::Duration| peer.as_secs_f64() / ours.as_secs_f64();
        let encode = both().map(|(outcome, ours, peer)| (outcome.place(), speed_up(peer.encode.min, ours.encode.min)));
        let decode =
            both().map(|(outcome, ours, peer)| (outcome.place(), speed_up(peer.decode().min, ours.decode().min)));
        let sizes = both().map(|(outcome, ours, peer)| (outcome.place(), peer.bytes_per_value / ours.bytes_per_value));
        let texts = ["encoding", "decoding", "size"];
        let figures: [Vec<(String, f64)>; 3] = [encode.collect(), decode.collect(), sizes.collect()];
        for (what, figures) in texts.into_iter().zip(figures) {
            // A block of ours has a header that a peer leaves to its user: a hundredth more is as small.
            let mark = if what == "size" { 0.99 } else { 1.0 };
            let text = format!("{what}: {scheme} ahead of {peer}");
            let enough = |mark: Mark| {
                let is_met = mark.met.0 as f64 >= AHEAD_SHARE * mark.met.1 as f64;
                Mark { is_met, ..mark }
            };
            marks.extend(Mark::at_least(text, mark, figures.into_iter()).map(enough));
        }
    }
    marks
}

fn with_exceptions(outcomes: &[Outcome]) -> Vec<(String, f64)> {
    let of_kind = |kind: &'static str| outcomes.iter().filter(move |outcome| outcome.kind == kind);
    of_kind(WITH_EXCEPTIONS)
        .filter_map(|with| {
            let without = of_kind(WITHOUT_EXCEPTIONS)
                .find(|without| without.type_name == with.type_name && without.width == with.width)?;
            let speed = |measured: &Measured| measured.gigabytes(measured.decode());
            Some((with.place(), speed(with.ours()) / speed(without.ours())))
        })
        .collect()
}

/// A figure of each block of ascending `u32`, beside that of BP128.
fn deltas(outcomes: &[Outcome], figure: fn(&Measured, &Measured) -> f64) -> impl Iterator<Item = (String, f64)> {
    let of_scheme = outcomes
        .iter()
        .filter(|outcome| outcome.scheme == "delta" && outcome.type_name == "u32" && outcome.kind == "gaps");
    // In shorter blocks, which wide gaps make, the header would be what is compared.
    let is_long = |outcome: &&Outcome| outcome.ours().plain_bytes >= 4 * DELTA_COUNT_MIN;
    of_scheme.filter(is_long).filter_map(move |outcome| {
        let peer = outcome.measured.iter().find(|measured| measured.name == "bp128 d1")?;
        Some((outcome.place(), figure(outcome.ours(), peer)))
    })
}
