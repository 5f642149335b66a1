//! The pages that lead to the leaves (docs/format/tree.md).
//!
//! ```text
//!  0      1      2       3      4       8
//!  | form | kind | bound | zero | count | pages of leaves | least keys of leaves |
//!
//!  0      1      2       3      4            6      8              12           16      20
//!  | form | kind | codec | zero | block keys | zero | record width | leaf bytes | count | directory pages |
//! ```

use crate::input::{Damage, Input};
use crate::keys::{KeyList, TreeKey, lent};
use crate::records::RecordShape;
use crate::tree::TreeOptions;
use sinter_codec::key_codec_by_tag;
use sinter_storage::PageId;

/// The form that is written, of both pages.
const FORM: u8 = 1;

/// A leaf in the directory.
#[derive(Debug)]
pub(crate) struct Entry<K: TreeKey + ?Sized> {
    /// The least key that it may have; `None` for the first leaf of all.
    pub(crate) low: Option<K::Owned>,
    pub(crate) page: PageId,
}

/// Appends a part of the directory.
pub(crate) fn write<K: TreeKey + ?Sized>(entries: &[Entry<K>], out: &mut Vec<u8>) {
    let is_bounded = entries.first().is_some_and(|first| first.low.is_some());
    out.extend([FORM, K::List::KIND, u8::from(is_bounded), 0]);
    out.extend((entries.len() as u32).to_le_bytes());
    entries.iter().for_each(|entry| out.extend(entry.page.0.to_le_bytes()));
    entries.iter().filter_map(|entry| entry.low.as_ref()).for_each(|low| K::List::write_key(lent(low), out));
}

/// The part of the directory that these bytes are.
///
/// # Errors
/// What is wrong with them. Least keys increase otherwise.
pub(crate) fn read<K: TreeKey + ?Sized>(bytes: &[u8]) -> Result<Vec<Entry<K>>, Damage> {
    let mut input = Input::new(bytes);
    check_form::<K>(&mut input)?;
    let is_bounded = match (input.u8()?, input.u8()?) {
        (bound @ (0 | 1), 0) => bound == 1,
        other => return Err(format!("{other:?} where there is 0 or 1, and 0")),
    };
    let count = input.u32()?;
    let pages = pages(&mut input, count)?;
    let mut entries: Vec<Entry<K>> = Vec::with_capacity(pages.len());
    for page in pages {
        let low = if is_bounded || !entries.is_empty() { Some(K::List::read_key(&mut input)?) } else { None };
        if entries.last().is_some_and(|last| last.low >= low) {
            return Err("least keys of leaves do not increase".to_owned());
        }
        entries.push(Entry { low, page });
    }
    input.end()?;
    Ok(entries)
}

/// The root page of a tree whose directory is in these pages.
pub(crate) fn root_bytes<K: TreeKey + ?Sized>(options: &TreeOptions, pages: &[PageId]) -> Vec<u8> {
    let TreeOptions { codec, block_len, records, leaf_bytes } = *options;
    let mut out = vec![FORM, K::List::KIND, codec.tag(), 0];
    out.extend((block_len as u16).to_le_bytes());
    out.extend([0; 2]);
    out.extend(records.width().to_le_bytes());
    out.extend((leaf_bytes as u32).to_le_bytes());
    out.extend((pages.len() as u32).to_le_bytes());
    pages.iter().for_each(|page| out.extend(page.0.to_le_bytes()));
    out
}

/// What [`root_bytes`] wrote.
///
/// # Errors
/// What is wrong with them. Options are within their ranges otherwise.
pub(crate) fn read_root<K: TreeKey + ?Sized>(bytes: &[u8]) -> Result<(TreeOptions, Vec<PageId>), Damage> {
    let mut input = Input::new(bytes);
    check_form::<K>(&mut input)?;
    let tag = input.u8()?;
    let codec = key_codec_by_tag(tag).ok_or_else(|| format!("key codec {tag} is unknown"))?;
    let zero = input.u8()?;
    let block_len = usize::from(input.u16()?);
    if (zero, input.u16()?) != (0, 0) {
        return Err("something is where zeros belong".to_owned());
    }
    let records = RecordShape::of_width(input.u32()?);
    let leaf_bytes = input.u32()? as usize;
    let options = TreeOptions { codec, block_len, records, leaf_bytes };
    if let Some(flaw) = options.flaw() {
        return Err(flaw);
    }
    let count = input.u32()?;
    let pages = pages(&mut input, count)?;
    input.end()?;
    Ok((options, pages))
}

fn check_form<K: TreeKey + ?Sized>(input: &mut Input<'_>) -> Result<(), Damage> {
    let (form, kind) = (input.u8()?, input.u8()?);
    if form != FORM {
        return Err(format!("form {form}; this build knows {FORM}"));
    }
    if kind != K::List::KIND {
        return Err(format!("keys of kind {kind}, where the tree has {}", K::List::KIND));
    }
    Ok(())
}

fn pages(input: &mut Input<'_>, count: u32) -> Result<Vec<PageId>, Damage> {
    let (numbers, _) = input.bytes((count as usize).saturating_mul(size_of::<u64>()))?.as_chunks();
    Ok(numbers.iter().map(|number| PageId(u64::from_le_bytes(*number))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_page::{example, hex};
    use crate::test_keys::TestKey;
    use proptest::prelude::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use sinter_codec::KeyCodec;

    fn comes_back<K: TestKey + ?Sized>(seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed);
        let first = random.random_range(0..2);
        let count = random.random_range(first..20);
        let low = |number: u64| (number > 0).then(|| K::of(number));
        let entries: Vec<Entry<K>> =
            (first..count).map(|number| Entry { low: low(number), page: PageId(random.random()) }).collect();
        let mut bytes = Vec::new();
        write(&entries, &mut bytes);
        let all =
            |entries: &[Entry<K>]| entries.iter().map(|entry| (entry.low.clone(), entry.page)).collect::<Vec<_>>();
        assert_eq!(all(&read::<K>(&bytes).unwrap()), all(&entries));
        assert!((0..bytes.len()).all(|end| read::<K>(&bytes[..end]).is_err()));
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            let at = random.random_range(0..damaged.len());
            damaged[at] ^= 1 << random.random_range(0..8);
            if let Ok(entries) = read::<K>(&damaged) {
                assert!(entries.is_sorted_by(|one, next| one.low < next.low));
            }
        }
        let options = TreeOptions { leaf_bytes: 4096, ..TreeOptions::new(KeyCodec::For, RecordShape::Variable) };
        let pages: Vec<PageId> = entries.iter().map(|entry| entry.page).collect();
        let bytes = root_bytes::<K>(&options, &pages);
        assert_eq!(read_root::<K>(&bytes).unwrap(), (options, pages));
        assert!((0..bytes.len()).all(|end| read_root::<K>(&bytes[..end]).is_err()));
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            let at = random.random_range(0..damaged.len());
            damaged[at] ^= 1 << random.random_range(0..8);
            if let Ok((options, _)) = read_root::<K>(&damaged) {
                assert_eq!(options.flaw(), None);
            }
        }
    }

    proptest! {
        #[test]
        fn what_leads_to_leaves_comes_back_and_damage_is_found_or_harmless(seed in any::<u64>()) {
            comes_back::<u32>(seed);
            comes_back::<u64>(seed);
            comes_back::<[u8]>(seed);
        }
    }

    #[test]
    fn the_format_page_shows_what_is_written() {
        let entries = [Entry::<u32> { low: None, page: PageId(7) }, Entry { low: Some(512), page: PageId(9) }];
        let mut bytes = Vec::new();
        write(&entries, &mut bytes);
        assert_eq!(hex(&bytes), example("Directory"));
        let options = TreeOptions::new(KeyCodec::Vbyte, RecordShape::Fixed(2));
        assert_eq!(hex(&root_bytes::<u32>(&options, &[PageId(10)])), example("Root"));
    }
}
