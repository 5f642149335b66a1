//! Byte strings as keys: short ones are words.

use super::numbers::{Keys, Word};
use crate::text_head::TextHead;
use foldhash::fast::RandomState;
use sinter_codec::BytesView;
use std::hash::BuildHasher;

/// A text that is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    head: TextHead,
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    /// One of many.
    #[inline(always)]
    pub(super) fn at(texts: &BytesView<'a>, row: usize) -> Text<'a> {
        Text { head: TextHead::at(texts, row), bytes: texts.get(row) }
    }
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(bytes: &'a [u8]) -> Text<'a> {
        Text { head: TextHead::of(bytes), bytes }
    }
}

/// Texts by number.
#[derive(Debug)]
pub(super) struct Texts {
    heads: Vec<TextHead>,
    /// What is longer than a head, one after the other.
    data: Vec<u8>,
    /// By number, where its text ends there; nothing beyond the last that is longer.
    ends: Vec<usize>,
    hasher: RandomState,
    seed: u64,
}

impl Default for Texts {
    fn default() -> Self {
        let hasher = RandomState::default();
        let seed = hasher.hash_one(0u64);
        Texts { heads: Vec::new(), data: Vec::new(), ends: Vec::new(), hasher, seed }
    }
}

impl Texts {
    /// The text with a number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        self.heads[number].text().unwrap_or_else(|| self.longer(number))
    }

    fn longer(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.data[start..self.ends[number]]
    }
}

impl Keys for Texts {
    type Key<'a> = Text<'a>;

    #[inline]
    fn hash(&self, key: Text<'_>) -> u64 {
        match key.head.is_whole() {
            true => key.head.word().mixed(self.seed),
            false => self.hasher.hash_one(key.bytes),
        }
    }

    #[inline]
    fn is(&self, number: u32, key: Text<'_>) -> bool {
        let number = number as usize;
        self.heads[number] == key.head && (key.head.is_whole() || self.longer(number) == key.bytes)
    }

    fn key(&self, number: u32) -> Text<'_> {
        Text { head: self.heads[number as usize], bytes: self.get(number) }
    }

    fn push(&mut self, key: Text<'_>) {
        if !key.head.is_whole() {
            // Nothing of those before it, if they are short.
            self.ends.resize(self.heads.len(), self.data.len());
            self.data.extend_from_slice(key.bytes);
            self.ends.push(self.data.len());
        }
        self.heads.push(key.head);
    }

    fn push_none(&mut self) {
        self.push(Text::from(&[][..]));
    }

    fn len(&self) -> usize {
        self.heads.len()
    }

    fn bytes(&self) -> usize {
        let (heads, ends) = (self.heads.capacity() * size_of::<TextHead>(), self.ends.capacity() * size_of::<usize>());
        heads + self.data.capacity() + ends
    }

    #[inline]
    fn touch(&self, number: u32) -> u64 {
        self.heads[number as usize].word() as u64
    }
}
