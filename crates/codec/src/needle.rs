//! A text that others are searched for.

use memchr::memmem::Finder;

/// A text made ready to be searched for: as rare bytes of it are looked for first, most others are passed over.
#[derive(Clone, Debug)]
pub(crate) struct Needle(Box<Finder<'static>>);

impl Needle {
    /// Of a text that is not empty.
    pub(crate) fn new(text: &[u8]) -> Needle {
        debug_assert!(!text.is_empty());
        Needle(Box::new(Finder::new(text).into_owned()))
    }

    /// Its bytes.
    pub(crate) fn text(&self) -> &[u8] {
        self.0.needle()
    }

    /// Where it stands first in `text`.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<usize> {
        self.0.find(text)
    }
}

impl PartialEq for Needle {
    fn eq(&self, other: &Needle) -> bool {
        self.text() == other.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_is_found_anywhere() {
        for (text, needle, at) in [
            ("special requests", "quest", Some(10)),
            ("aab", "ab", Some(1)),
            ("aa", "aab", None),
            ("", "a", None),
            ("abab", "b", Some(1)),
        ] {
            assert_eq!(Needle::new(needle.as_bytes()).find(text.as_bytes()), at, "{needle} in {text}");
        }
    }
}
