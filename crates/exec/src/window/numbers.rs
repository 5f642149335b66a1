//! Functions that number rows: nothing is asked about values.

use super::WindowKind;
use super::borders::Partition;

/// Calls `push` with the number of each row of a partition.
pub(super) fn integers(kind: &WindowKind, partition: Partition<'_>, mut push: impl FnMut(u64)) {
    let Partition { first, end, peers, .. } = partition;
    let count = (end - first) as u64;
    match kind {
        WindowKind::Rank => {
            peers.iter().for_each(|group| group.clone().for_each(|_| push((group.start - first) as u64 + 1)));
        }
        WindowKind::DenseRank => {
            (1..).zip(peers).for_each(|(rank, group)| group.clone().for_each(|_| push(rank)));
        }
        WindowKind::Ntile(buckets) => {
            // The first few buckets have one row more.
            let (size, larger) = (count / buckets, count % buckets);
            let in_larger = larger * (size + 1);
            for row in 0..count {
                push(match row.checked_sub(in_larger) {
                    None => row / (size + 1) + 1,
                    Some(row) => larger + row / size.max(1) + 1,
                });
            }
        }
        _ => (1..=count).for_each(push),
    }
}

/// The same for shares.
pub(super) fn shares(kind: &WindowKind, partition: Partition<'_>, mut push: impl FnMut(f64)) {
    let Partition { first, end, peers, .. } = partition;
    let count = end - first;
    for group in peers {
        let share = match kind {
            WindowKind::CumeDist => (group.end - first) as f64 / count as f64,
            _ if count == 1 => 0.0,
            _ => (group.start - first) as f64 / (count - 1) as f64,
        };
        group.clone().for_each(|_| push(share));
    }
}
