//! sinter-storage
