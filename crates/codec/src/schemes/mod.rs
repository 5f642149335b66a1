//! The one list of schemes. A new one is a file in this folder and a line here.

mod alp;
mod alp_rd;
mod base_delta;
mod bitpack;
mod constant;
mod delta;
mod dict;
mod fixed_point;
mod frame_of_reference;
mod front;
mod fsst;
mod halves;
mod multiple;
mod pdict;
mod pfor;
mod pfor_delta;
mod quantise;
mod raw;
mod rle;
mod single;
#[cfg(feature = "zfp")]
mod zfp;

use crate::scheme::Scheme;
use crate::{Error, Physical, Result};

/// A scheme in the list.
#[derive(Debug)]
pub struct SchemeEntry {
    /// Its number on disk. Never given twice, nor reused.
    pub tag: u8,
    /// Its name: in [`crate::Choice::Forced`], messages and SQL.
    pub name: &'static str,
    pub(crate) scheme: &'static dyn Scheme,
}

impl SchemeEntry {
    /// Whether it holds values of this type.
    pub fn holds(&self, physical: Physical) -> bool {
        self.scheme.holds(physical)
    }
}

macro_rules! schemes {
    ($($(#[$meta:meta])* $tag:literal => $module:ident :: $scheme:ident, $name:literal;)*) => {
        /// Every scheme, in the order of tags.
        pub static SCHEMES: &[SchemeEntry] =
            &[$($(#[$meta])* SchemeEntry { tag: $tag, name: $name, scheme: &$module::$scheme }),*];
    };
}

schemes! { // tag on disk => file :: scheme, name
    0 => raw::Raw, "raw";
    1 => constant::Constant, "constant";
    2 => rle::Rle, "rle";
    3 => bitpack::Bitpack, "bitpack";
    4 => frame_of_reference::FrameOfReference, "for";
    5 => pfor::Pfor, "pfor";
    6 => delta::Delta, "delta";
    7 => pfor_delta::PforDelta, "pfor_delta";
    8 => dict::Dict, "dict";
    9 => fsst::Fsst, "fsst";
    10 => alp::Alp, "alp";
    11 => alp_rd::AlpRd, "alp_rd";
    12 => multiple::Multiple, "multiple";
    13 => single::Single, "single";
    14 => fixed_point::FixedPoint, "fixed_point";
    15 => quantise::Quantise, "quantise";
    16 => base_delta::BaseDelta, "base_delta";
    17 => front::Front, "front";
    18 => pdict::Pdict, "pdict";
    #[cfg(feature = "zfp")]
    19 => zfp::Zfp, "zfp";
    20 => halves::Halves, "halves";
}

/// Schemes that not every build has, by tag and name; the feature that brings one has its name.
pub(crate) static OPTIONAL: &[(u8, &str)] = &[(19, "zfp")];

/// The scheme that holds everything.
pub(crate) static RAW: SchemeEntry = SchemeEntry { tag: 0, name: "raw", scheme: &raw::Raw };

/// The scheme with this tag on disk.
///
/// # Errors
/// [`Error::NotInThisBuild`] for one that another build has, and [`Error::UnknownScheme`].
pub(crate) fn scheme_by_tag(tag: u8) -> Result<&'static SchemeEntry> {
    let found = SCHEMES.iter().find(|entry| entry.tag == tag);
    found.ok_or_else(|| match OPTIONAL.iter().find(|optional| optional.0 == tag) {
        Some(&(tag, name)) => Error::NotInThisBuild { tag, name },
        None => Error::UnknownScheme { tag },
    })
}

/// The scheme of this name.
///
/// # Errors
/// [`Error::NotInThisBuild`] for one that another build has; [`Error::NoSuchScheme`], with the names there are.
pub fn scheme_by_name(name: &str) -> Result<&'static SchemeEntry> {
    SCHEMES.iter().find(|entry| entry.name == name).ok_or_else(|| {
        if let Some(&(tag, name)) = OPTIONAL.iter().find(|optional| optional.1 == name) {
            return Error::NotInThisBuild { tag, name };
        }
        let known: Vec<&str> = SCHEMES.iter().map(|entry| entry.name).collect();
        Error::NoSuchScheme { name: name.to_owned(), known: known.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_names_are_given_once() {
        for (index, entry) in SCHEMES.iter().enumerate() {
            assert!(SCHEMES[..index].iter().all(|earlier| earlier.tag < entry.tag && earlier.name != entry.name));
            assert_eq!(entry.name, entry.scheme.name());
        }
    }

    #[test]
    fn a_scheme_of_another_build_is_named_with_what_brings_it() {
        for &(tag, name) in OPTIONAL {
            let (by_tag, by_name) = (scheme_by_tag(tag), scheme_by_name(name));
            if let Some(entry) = SCHEMES.iter().find(|entry| entry.tag == tag) {
                assert!(entry.name == name && by_tag.is_ok() && by_name.is_ok());
                continue;
            }
            let message = format!("scheme {tag} `{name}` is not in this build; build with --features {name}");
            assert_eq!(by_tag.unwrap_err().to_string(), message);
            assert_eq!(by_name.unwrap_err().to_string(), message);
        }
        assert_eq!(scheme_by_tag(250).unwrap_err(), Error::UnknownScheme { tag: 250 });
    }
}
