//! The beginning of a text in one word, which is all of it where the text is short.

use sinter_codec::BytesView;

/// Bytes of a head that are those of the text.
const TEXT_BYTES: usize = 15;

/// The last byte of heads of texts that are longer.
const LONGER: u8 = TEXT_BYTES as u8 + 2;

/// The first 15 bytes of a text, with zeros where it has fewer, and last its length and 1; 17 for all that are longer.
///
/// Texts with different heads are different, and in the order of their heads ([`TextHead::number`]). Equal heads are equal
/// texts where they are [whole](TextHead::text).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextHead([u8; TEXT_BYTES + 1]);

/// By length of a short text, which of 16 bytes from its beginning on are its own.
static OWN: [u128; TEXT_BYTES + 1] = {
    let mut own = [0; TEXT_BYTES + 1];
    let mut len = 1;
    while len <= TEXT_BYTES {
        own[len] = u128::MAX >> (u128::BITS as usize - 8 * len);
        len += 1;
    }
    own
};

impl TextHead {
    /// Of a text by itself.
    pub(crate) fn of(text: &[u8]) -> TextHead {
        let len = text.len().min(TEXT_BYTES);
        let mut head = [0; TEXT_BYTES + 1];
        head[..len].copy_from_slice(&text[..len]);
        head[TEXT_BYTES] = if text.len() > TEXT_BYTES { LONGER } else { len as u8 + 1 };
        TextHead(head)
    }

    /// Of a text among others, whose bytes are read with it and masked.
    #[inline(always)]
    pub(crate) fn at(texts: &BytesView<'_>, index: usize) -> TextHead {
        let start = texts.offsets[index] as usize;
        let len = texts.offsets[index + 1] as usize - start;
        let Some(next) = texts.data.get(start..).and_then(<[u8]>::first_chunk) else {
            return TextHead::of(texts.get(index));
        };
        let (own, last) = match OWN.get(len) {
            Some(own) => (*own, len as u8 + 1),
            None => (OWN[TEXT_BYTES], LONGER),
        };
        TextHead((u128::from_le_bytes(*next) & own | u128::from(last) << (8 * TEXT_BYTES)).to_le_bytes())
    }

    /// The whole text, where it is short.
    #[inline(always)]
    pub(crate) fn text(&self) -> Option<&[u8]> {
        self.is_whole().then(|| &self.0[..usize::from(self.0[TEXT_BYTES]).saturating_sub(1)])
    }

    /// Whether it is all of its text.
    #[inline(always)]
    pub(crate) fn is_whole(&self) -> bool {
        self.0[TEXT_BYTES] < LONGER
    }

    /// All its bits, whatever their order.
    #[inline(always)]
    pub(crate) fn word(self) -> u128 {
        u128::from_le_bytes(self.0)
    }

    /// A number that orders as the text does. It is neither 0 nor the greatest.
    #[inline(always)]
    #[expect(clippy::big_endian_bytes, reason = "texts are ordered by their first bytes")]
    pub(crate) fn number(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The head with this number.
    #[inline(always)]
    #[expect(clippy::big_endian_bytes, reason = "texts are ordered by their first bytes")]
    pub(crate) fn of_number(number: u128) -> TextHead {
        TextHead(number.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinter_codec::BytesBuf;

    #[test]
    fn heads_order_as_texts_do_wherever_they_stand() {
        let mut texts: Vec<Vec<u8>> = (0..20).flat_map(|len| [b'a', 0, 0xFF].map(|byte| vec![byte; len])).collect();
        texts.extend(
            [&b"abc"[..], b"abc\0", b"abd", b"fifteen bytes..", b"fifteen bytes..\0", b"fifteen bytes..b"]
                .map(Vec::from),
        );
        for last in 0..texts.len() {
            // Each of them is the last one once: nothing comes after it.
            texts.swap(last, 0);
            let all: BytesBuf = texts.iter().rev().map(|text| &text[..]).collect();
            let view = all.view();
            let heads: Vec<TextHead> = (0..view.len()).map(|index| TextHead::at(&view, index)).collect();
            for (index, head) in heads.iter().enumerate() {
                let text = view.get(index);
                assert_eq!(*head, TextHead::of(text));
                assert_eq!(TextHead::of_number(head.number()), *head);
                assert!(head.number() != 0 && head.number() != u128::MAX);
                assert_eq!(head.text(), (text.len() <= TEXT_BYTES).then_some(text));
                for (other, other_head) in heads.iter().enumerate() {
                    let order = head.number().cmp(&other_head.number());
                    let is_open = order.is_eq() && !head.is_whole();
                    assert!(is_open || order == text.cmp(view.get(other)), "{text:?} beside {:?}", view.get(other));
                }
            }
        }
    }
}
