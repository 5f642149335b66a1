//! sinter-sql
