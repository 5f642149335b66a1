//! What the database promises, through its front door. One binary, because each links the whole SQL library; one file
//! for each promise.

mod answers;
mod damage;
mod databases;
mod engine;
mod failed_syncs;
mod full_disk;
mod golden;
mod indexes;
mod kill;
mod kill_writers;
mod kv;
mod kv_changes;
mod kv_duplicates;
mod kv_overflow;
mod kv_sql;
mod layouts;
mod memory;
mod reopen;
mod serializable;
mod simulation;
mod sql_scripts;
mod statements;
mod tpch;
mod transactions;
mod upkeep;
