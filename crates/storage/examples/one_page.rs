//! Writes the smallest database with something in it, and prints its bytes as the format pages show them.
//!
//! ```sh
//! cargo run --example one_page
//! ```

use std::path::Path;
use std::sync::Arc;

use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{ObjectId, Options, PageKind, Record, RecordTag, Result, Store};

fn main() -> Result<()> {
    // A disk in memory, whose files can be looked at.
    let disk = CrashingFileSystem::new();
    let path = Path::new("shop.sinter");
    let (store, _) = Store::open(Arc::new(disk.clone()), path, Options::default())?;

    // A page is written first, and then a commit names it.
    let page = store.write_page(PageKind::CHUNK, b"compressed columns")?;
    let record =
        Record { tag: RecordTag::ROW_GROUPS_ATTACHED, object: ObjectId(7), payload: page.0.to_le_bytes().to_vec() };
    store.commit(&[record], &[page])?;
    let log = disk.files().into_iter().find(|file| file != path).expect("the log, while the database is open");
    dump("log", &disk.bytes(&log));

    // The close writes what is left, a catalog here, and removes the log.
    store.close(|writer| writer.put(None, PageKind::CATALOG, b"catalog"))?;
    dump("file", &disk.bytes(path));
    Ok(())
}

/// Sixteen bytes a line; lines of zeros are left out.
fn dump(name: &str, bytes: &[u8]) {
    println!("{name}, {} bytes", bytes.len());
    for (index, line) in bytes.chunks(16).enumerate().filter(|(_, line)| line.iter().any(|byte| *byte != 0)) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{:06x}  {}", index * 16, hex.join(" "));
    }
}
