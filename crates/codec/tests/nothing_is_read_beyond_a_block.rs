//! No encoder reads a byte before or behind the values that it is given, no decoder and no kernel one before or behind the
//! bytes of a block, and none writes one behind what it fills: on every instruction set, all of it happens in memory that
//! stands at a page which nobody may touch.
//!
//! One false access ends a process. So each run is a process of its own, which says what it is about to do.
#![cfg(unix)]

mod columns;
mod fence;
mod fenced;
mod golden;

use fence::Side;
use sinter_codec::*;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

#[global_allocator]
static ALLOCATOR: fence::Fences = fence::Fences;

/// What a process of this test is to do.
const ERRAND: &str = "SINTER_FENCED";

/// Runs `errand` of the test `name` in a process of its own, on one instruction set. Where it fails, returns the signal
/// that ended it, if one did, and what it printed last.
fn failure(name: &str, errand: &str, isa: Isa) -> Option<(Option<i32>, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    let output = command.env(ERRAND, errand).env("SINTER_ISA", isa.name()).output().unwrap();
    if output.status.success() {
        return None;
    }
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Vec<&str> = printed.lines().rev().take(12).collect();
    Some((output.status.signal(), last.into_iter().rev().collect::<Vec<_>>().join("\n")))
}

/// In the process that was started for it, does `errand` between fences on each side; else starts one for each set.
fn between_fences(name: &str, errand: fn(Side)) {
    if std::env::var_os(ERRAND).is_none() {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            if let Some((signal, last)) = failure(name, "work", isa) {
                panic!("{name} on {isa} ended with signal {signal:?} after\n{last}");
            }
        }
        return;
    }
    assert_eq!(isa().name(), std::env::var("SINTER_ISA").unwrap());
    for side in [Side::End, Side::Start] {
        // A thread of its own has working memory of its own, and so at the fence.
        std::thread::spawn(move || errand(side)).join().unwrap();
        fence::put(Side::None);
    }
    assert!(fence::fenced() > 1000, "{} allocations stood at a fence", fence::fenced());
}

#[test]
fn blocks_of_every_scheme() {
    between_fences("blocks_of_every_scheme", fenced::blocks_of_every_scheme);
}

#[test]
fn numbers_of_every_width() {
    between_fences("numbers_of_every_width", fenced::numbers_of_every_width);
}

#[test]
fn blocks_by_choice_and_with_losses() {
    between_fences("blocks_by_choice_and_with_losses", fenced::blocks_by_choice_and_with_losses);
}

#[test]
fn damaged_blocks() {
    between_fences("damaged_blocks", fenced::damaged_blocks);
}

#[test]
fn blocks_of_keys() {
    between_fences("blocks_of_keys", fenced::blocks_of_keys);
}

/// The canary: a process that does read a byte too far does not live.
#[test]
fn the_fence_holds() {
    let side = match std::env::var(ERRAND).as_deref() {
        Ok("behind") => Side::End,
        Ok(_) => Side::Start,
        Err(_) => {
            for errand in ["behind", "before"] {
                let (signal, last) = failure("the_fence_holds", errand, Isa::Scalar).expect("a byte too far was read");
                assert!(signal.is_some(), "{errand}: {last}");
            }
            return;
        }
    };
    fence::put(side);
    let bytes = vec![7u8; 1001];
    fence::put(Side::None);
    println!("{} there is {}", bytes.len(), fence::trespass(&bytes, side));
}
