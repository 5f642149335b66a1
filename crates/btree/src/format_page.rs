//! What docs/format/tree.md shows.

/// The first block of hex below a heading, in one line.
pub(crate) fn example(heading: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/tree.md");
    let text = std::fs::read_to_string(page).unwrap();
    let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no heading {heading}"));
    let block = section.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
    let bytes = block.lines().flat_map(|line| line.split("  ").next().unwrap_or_default().split_whitespace());
    bytes.collect::<Vec<_>>().join(" ")
}

/// Bytes as the page shows them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
