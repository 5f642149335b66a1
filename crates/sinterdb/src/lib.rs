//! sinterdb
