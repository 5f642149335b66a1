//! The threads of storage, key-value trees and column tables, in orders that a machine would not try.
//!
//! The first two are built with [shuttle](https://docs.rs/shuttle)'s locks and atomics here (`src/sync.rs` of each). At each
//! of them, and so at each call to a disk, a seed says which thread goes on. Whoever waits for ever is found out, and so is
//! a thread that reads a lock twice. What shuttle does not show is what weaker orderings of atomics allow: to it all are
//! sequentially consistent. Nor does it show threads that press row groups in other orders than the machine does: those, and
//! their locks, are the standard library's, and whoever waits for them lets nobody else go on.
//!
//! | file | what runs at once |
//! |---|---|
//! | `explore` | the schedules: from a seed, and again |
//! | `commits` | commits, group sync, rewrites, exclusive transactions, beside checkpoints, vacuum, backup, close, power loss |
//! | `pages` | pins under a pool that is too small, reads of one page, now and ahead, handles that are dropped |
//! | `vacuum` | pages that move while others free them, write them anew, read them and back them up |
//! | `trees` | commits to a tree through the timeline, reads of snapshots, evictions, checkpoints that fail or not, power loss |
//! | `tables` | inserts, deletes, merging, pressing, DROP, scans of old states, beside checkpoints, vacuum, backup |
//! | `calls` | any calls of the store in any order, which come to an end |

#![cfg(test)]

mod calls;
mod commits;
mod explore;
mod pages;
mod tables;
mod trees;
mod vacuum;
