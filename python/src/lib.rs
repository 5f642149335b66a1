//! sinterdb-python
