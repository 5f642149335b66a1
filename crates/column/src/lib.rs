//! sinter-column
