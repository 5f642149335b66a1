//! Which processes hold a lock on a file, as far as the operating system tells.
//!
//! A refused `flock` does not say by whom. Linux lists all locks in `/proc/locks`, by device and inode. Elsewhere, and
//! where the holder lives in another container, nothing is known and the message does without.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::{self, Read};

/// Where Linux lists all locks.
#[cfg(target_os = "linux")]
const LOCKS: &str = "/proc/locks";

/// What a list is read by: Linux gives a page at a time at most.
#[cfg(target_os = "linux")]
const LIST_BYTES: usize = 4096;

/// How often the list is read where it names nobody: between two of its pages others may take and give back locks, and a
/// line be passed over.
#[cfg(target_os = "linux")]
const TRIES: usize = 8;

/// The holders' process ids, each once, in no particular order.
#[cfg(target_os = "linux")]
pub(super) fn of(file: &File) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = file.metadata() else {
        return Vec::new();
    };
    first_named(metadata.dev(), metadata.ino(), || File::open(LOCKS))
}

/// The holders in the first of [`TRIES`] lists that names any.
#[cfg(target_os = "linux")]
fn first_named<R: Read>(device: u64, inode: u64, mut open: impl FnMut() -> io::Result<R>) -> Vec<u32> {
    let lists = (0..TRIES).filter_map(|_| listed(open().ok()?));
    let mut holders = lists.map(|locks| parse(&locks, device, inode));
    holders.find(|holders| !holders.is_empty()).unwrap_or_default()
}

/// The lines of a list that changes while it is read: `read_to_string` would begin with a few bytes, and tear it.
#[cfg(target_os = "linux")]
fn listed(mut list: impl Read) -> Option<String> {
    let (mut text, mut page) = (Vec::new(), [0; LIST_BYTES]);
    loop {
        match list.read(&mut page) {
            Ok(0) => return String::from_utf8(text).ok(),
            Ok(read) => text.extend_from_slice(&page[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Nothing is known.
#[cfg(not(target_os = "linux"))]
pub(super) fn of(_file: &File) -> Vec<u32> {
    Vec::new()
}

/// Reads lines such as `1: FLOCK  ADVISORY  WRITE 16471 fe:00:9977878 0 EOF`.
#[cfg(target_os = "linux")]
fn parse(locks: &str, device: u64, inode: u64) -> Vec<u32> {
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    let place = format!("{major:02x}:{minor:02x}:{inode}");
    let mut holders: Vec<u32> = locks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        // A process that waits for a lock has an arrow in the second column, which moves the others.
        .filter(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&place.as_str()))
        .filter_map(|fields| fields[4].parse().ok())
        .collect();
    holders.sort_unstable();
    holders.dedup();
    holders
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{LIST_BYTES, TRIES, first_named};
    use std::io::{self, Read};

    const LINE: &[u8] = b"1: FLOCK  ADVISORY  WRITE 16471 fe:00:9977878 0 EOF\n";

    /// Gives its pages one by one; for one that is `None`, it was interrupted.
    struct Pages(Vec<Option<&'static [u8]>>);

    impl Read for Pages {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            assert!(out.len() >= LIST_BYTES, "a page would be torn");
            let Some(page) = self.0.pop() else { return Ok(0) };
            let page = page.ok_or(io::ErrorKind::Interrupted)?;
            out[..page.len()].copy_from_slice(page);
            Ok(page.len())
        }
    }

    #[test]
    fn a_list_is_read_by_pages_and_again_where_it_names_nobody() {
        let lists: [Vec<Option<&[u8]>>; 4] =
            [vec![], vec![Some(b"\xff\n")], vec![None], vec![Some(LINE), None, Some(b"2:\n")]];
        for given in lists {
            let names_one = given.contains(&Some(LINE));
            let mut tries = 0;
            let holders = first_named(0xfe00, 9977878, || {
                tries += 1;
                if tries == 1 { Err(io::ErrorKind::NotFound.into()) } else { Ok(Pages(given.clone())) }
            });
            assert_eq!(holders, if names_one { vec![16471] } else { vec![] });
            assert_eq!(tries, if names_one { 2 } else { TRIES });
        }
    }

    #[test]
    fn finds_the_holder_by_device_and_inode() {
        let locks = "1: FLOCK  ADVISORY  WRITE 16471 fe:00:9977878 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 3 fe:00:9977878 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 4 fe:00:9977878 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 5 fe:01:9977878 0 EOF\n";
        assert_eq!(super::parse(locks, 0xfe00, 9977878), vec![16471]);
        assert_eq!(super::parse(locks, 0xfe01, 9977878), vec![5]);
    }
}
