//! sinter-bench
