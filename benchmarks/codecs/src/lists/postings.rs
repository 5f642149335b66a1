//! Lists of ascending numbers: of documents that a word occurs in, and of rows that a bitmap index has.

use crate::Failure;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Lists, one after the other.
pub(super) struct Lists {
    pub(super) name: String,
    /// The numbers of all lists; in each they ascend.
    pub(super) numbers: Vec<u32>,
    /// Where each list ends.
    pub(super) ends: Vec<usize>,
}

impl Lists {
    fn new(name: &str) -> Lists {
        Lists { name: name.to_owned(), numbers: Vec::new(), ends: Vec::new() }
    }

    /// Differences from the number before, less one; of the first number of a list the number itself.
    pub(super) fn gaps(&self) -> Vec<u32> {
        let mut gaps = Vec::with_capacity(self.numbers.len());
        let mut start = 0;
        for &end in &self.ends {
            let list = &self.numbers[start..end];
            gaps.extend(list.first());
            gaps.extend(list.windows(2).map(|two| two[1] - two[0] - 1));
            start = end;
        }
        gaps
    }

    /// Turns gaps into numbers.
    pub(super) fn add_up(&self, gaps: &mut [u32]) {
        let mut start = 0;
        for &end in &self.ends {
            let mut before = u32::MAX;
            for gap in &mut gaps[start..end] {
                before = before.wrapping_add(*gap).wrapping_add(1);
                *gap = before;
            }
            start = end;
        }
    }
}

fn lines(path: &Path) -> Result<impl Iterator<Item = std::io::Result<String>>, Failure> {
    Ok(BufReader::new(zstd::Decoder::new(File::open(path)?)?).lines())
}

/// A file of numbers, one list a line, with commas between.
pub(super) fn of_file(name: &str, path: &Path) -> Result<Lists, Failure> {
    let mut lists = Lists::new(name);
    for line in lines(path)? {
        for number in line?.split(',').filter(|number| !number.is_empty()) {
            lists.numbers.push(number.trim().parse()?);
        }
        lists.ends.push(lists.numbers.len());
    }
    Ok(lists)
}

/// The postings of a collection, one document a line with its words under `text`: for each word the documents that have
/// it.
pub(super) fn of_documents(name: &str, path: &Path, document_count: usize) -> Result<Lists, Failure> {
    let mut postings: HashMap<String, Vec<u32>> = HashMap::new();
    for (document, line) in (0..).zip(lines(path)?.take(document_count)) {
        let line: serde_json::Value = serde_json::from_str(&line?)?;
        let text = line["text"].as_str().ok_or("a document without text")?.to_lowercase();
        for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
            match postings.get_mut(word) {
                Some(list) if list.last() == Some(&document) => {}
                Some(list) => list.push(document),
                None => drop(postings.insert(word.to_owned(), vec![document])),
            }
        }
    }
    let mut postings: Vec<(String, Vec<u32>)> = postings.into_iter().collect();
    postings.sort_unstable();
    let mut lists = Lists::new(name);
    for (_, list) in postings {
        lists.numbers.extend_from_slice(&list);
        lists.ends.push(lists.numbers.len());
    }
    Ok(lists)
}
