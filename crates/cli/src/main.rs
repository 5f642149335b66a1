//! The sinter shell.
fn main() {}
