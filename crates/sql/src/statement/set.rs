//! SET.

use super::done;
use crate::batches::Outcome;
use crate::database::THREADS_MAX;
use crate::progress::Notes;
use crate::{Error, OnCorruption, Result, Session};
use sinter_codec::{Request, VECTOR_LEN};
use sinter_exec::SpillCompression;
use sinter_storage::Synchronous;
use std::sync::PoisonError;

pub(super) fn run(session: &Session, name: &str, value: &str) -> Result<Outcome> {
    match name {
        "threads" => {
            let threads = match value.parse::<usize>() {
                Ok(threads @ 1..=THREADS_MAX) => threads,
                _ => return Err(wrong(name, value, &format!("a number from 1 to {THREADS_MAX}"))),
            };
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).threads = threads;
        }
        "memory_limit" => {
            let bytes = parse_bytes(value).ok_or_else(|| wrong(name, value, "a size such as '512MB' or '2GiB'"))?;
            session.database.set_memory_limit(bytes);
        }
        "synchronous" => {
            let level = match value.to_lowercase().as_str() {
                "full" => Synchronous::Full,
                "normal" => Synchronous::Normal,
                "off" => Synchronous::Off,
                _ => return Err(wrong(name, value, "full, normal or off")),
            };
            session.database.attached().set_synchronous(session.database.store(), level)?;
        }
        "sinter.engine" => {
            let forced_off = match value.to_lowercase().as_str() {
                "auto" => false,
                "datafusion" => true,
                _ => return Err(wrong(name, value, "auto or datafusion")),
            };
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).engine_forced_off = forced_off;
        }
        "sinter.decompression" => {
            let page_wise = match value.to_lowercase().as_str() {
                "vector" => false,
                "page" => true,
                _ => return Err(wrong(name, value, "vector or page")),
            };
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).page_wise = page_wise;
        }
        "sinter.operator_memory" => {
            let wanted = || wrong(name, value, "a size such as '64MB', or auto");
            let bytes = match value.to_lowercase().as_str() {
                "auto" => None,
                _ => Some(parse_bytes(value).and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(wanted)?),
            };
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).spilling.beyond_bytes = bytes;
        }
        "sinter.spill_compression" => {
            let compression = match value.to_lowercase().as_str() {
                "auto" => SpillCompression::Auto,
                "none" => SpillCompression::None,
                "all" => SpillCompression::All,
                _ => return Err(wrong(name, value, "auto, none or all")),
            };
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).spilling.compression = compression;
        }
        "sinter.vector_rows" => {
            let rows = value.parse().ok().filter(|rows| (1..=VECTOR_LEN).contains(rows));
            let rows = rows.ok_or_else(|| wrong(name, value, &format!("1 to {VECTOR_LEN}")))?;
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).vector_rows = rows;
        }
        "sinter.compression" => {
            if value != "auto" {
                Request::parse(value).map_err(|error| Error::Sql(format!("{name}: {error}; or auto")))?;
            }
            let compression = (value != "auto").then(|| value.to_owned());
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).compression = compression;
        }
        "on_corruption" => {
            let on_corruption = match value.to_lowercase().as_str() {
                "error" => OnCorruption::Error,
                "skip" => OnCorruption::Skip,
                _ => return Err(wrong(name, value, "error or skip")),
            };
            session.settings.lock().unwrap_or_else(PoisonError::into_inner).on_corruption = on_corruption;
        }
        _ => {
            return Err(Error::Sql(format!(
                "there is no setting '{name}'; there are: memory_limit, on_corruption, sinter.compression, \
                 sinter.decompression, sinter.engine, sinter.operator_memory, sinter.spill_compression, \
                 sinter.vector_rows, synchronous, threads"
            )));
        }
    }
    Ok(done("SET", None, &Notes::default()))
}

fn wrong(name: &str, value: &str, wanted: &str) -> Error {
    Error::Sql(format!("{name} = '{value}' is not understood; it wants {wanted}"))
}

/// `512MB`, `2GiB`, `1000000`: bytes.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: f64 = match unit.trim().to_uppercase().as_str() {
        "" | "B" => 1.0,
        "K" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "T" | "TB" => 1e12,
        "KIB" => 1024.0,
        "MIB" => 1024.0 * 1024.0,
        "GIB" => 1024.0 * 1024.0 * 1024.0,
        "TIB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * factor;
    (bytes >= 1.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_bytes("512MB"), Some(512_000_000));
        assert_eq!(parse_bytes("1.5 GiB"), Some(1_610_612_736));
        assert_eq!(parse_bytes("77"), Some(77));
        assert_eq!(parse_bytes("many"), None);
    }
}
