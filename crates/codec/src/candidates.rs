//! Why a column is kept as it is: what each scheme promised for it, what it takes, and what decided.

use crate::chooser::check_size;
use crate::encoder::{Role, all_equal, estimates, write_as, write_values};
use crate::node::Node;
use crate::null_filling::fill_nulls;
use crate::schemes::SCHEMES;
use crate::{Bitmap, Result, Values};

/// A scheme that was weighed for some values.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name in [`crate::SCHEMES`].
    pub scheme: &'static str,
    /// Bytes of the values' node that the scheme promised, judged from a sample; `None` where it did not apply.
    pub estimated_bytes: Option<usize>,
    /// Bytes of that node when all values are written so; `None` where the scheme cannot hold them.
    pub bytes: Option<usize>,
    /// The scheme with its parts, as in [`crate::Block::describe`]; for one that cannot hold the values its name.
    pub description: String,
    /// Whether it is the one.
    pub is_chosen: bool,
    /// What spoke for or against it.
    pub why: String,
}

/// What [`crate::Choice::Auto`] weighs for a block of these values, the chosen scheme first, then by what they promised; those
/// that do not apply come last. Every scheme that holds the type is there. Encodes all values in each of them, so it takes
/// many times as long as an encoding.
///
/// # Errors
/// [`crate::Error::TooLarge`], as [`crate::encode`].
pub fn candidates(values: Values<'_>, validity: Option<&Bitmap>) -> Result<Vec<Candidate>> {
    check_size(values)?;
    let filled = validity.filter(|validity| !validity.all()).map(|validity| fill_nulls(values, validity));
    let values = filled.as_ref().map_or(values, |filled| filled.as_values());
    let promised = match values.is_empty() || all_equal(values) {
        true => Vec::new(),
        false => estimates(values, Role::Values, 1),
    };
    let mut node = Vec::new();
    let chosen = write_values(values, Role::Values, None, 1, &mut node).tag();
    let least = promised.iter().map(|estimate| estimate.weighed_bytes).min().unwrap_or(0);
    let mut found: Vec<Candidate> = Vec::new();
    for entry in SCHEMES.iter().filter(|entry| entry.holds(values.physical())) {
        let estimate = promised.iter().find(|estimate| estimate.entry.name == entry.name);
        node.clear();
        let is_written = write_as(entry, values, None, None, 1, &mut node).is_ok();
        let description = match is_written {
            true => Node::parse(&node, 1)?.0.open()?.reader.describe(),
            false => entry.name.to_owned(),
        };
        let is_chosen = entry.tag == chosen;
        let why = match estimate {
            _ if promised.is_empty() && is_chosen => "all values are the same".to_owned(),
            _ if promised.is_empty() => "not weighed, as all values are the same".to_owned(),
            None if is_written => "not weighed: it promised no gain".to_owned(),
            None => "cannot hold these values".to_owned(),
            Some(estimate) if is_chosen && estimate.weighed_bytes == least => "the least bytes".to_owned(),
            Some(_) if is_chosen => "nearly the least bytes, and the fastest to decode of those".to_owned(),
            Some(estimate) if estimate.is_near => "nearly the least bytes, but another decodes faster".to_owned(),
            Some(estimate) => {
                let more = (estimate.weighed_bytes as f64 / least.max(1) as f64 - 1.0) * 100.0;
                match estimate.weighed_bytes > estimate.bytes {
                    true => format!("{more:.0} % more bytes, as values that need those before them are weighed"),
                    false => format!("{more:.0} % more bytes"),
                }
            }
        };
        found.push(Candidate {
            scheme: entry.name,
            estimated_bytes: estimate.map(|estimate| estimate.bytes),
            bytes: is_written.then_some(node.len()),
            description,
            is_chosen,
            why,
        });
    }
    let rank = |candidate: &Candidate| promised.iter().position(|estimate| estimate.entry.name == candidate.scheme);
    found.sort_by_key(|candidate| (!candidate.is_chosen, rank(candidate).unwrap_or(usize::MAX)));
    Ok(found)
}
