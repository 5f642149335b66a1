//! redb, a B+tree of keys and values without SQL: `Durability::Immediate` syncs at each commit, `Durability::None` makes
//! nothing durable before a later commit that is. There is no level between the two.

use super::{Body, Client, Engine, Level, Row};
use crate::Failure;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;

const TABLE: TableDefinition<'_, i64, (i64, &str)> = TableDefinition::new("t");

struct Redb {
    database: Database,
    durability: Durability,
}

struct OfOne<'a>(&'a Redb);

pub(super) fn open(folder: &Path, level: Level) -> Result<Box<dyn Engine>, Failure> {
    let durability = match level {
        Level::Full => Durability::Immediate,
        Level::Normal => return Err("redb has no level between 'full' and 'off'".into()),
        Level::Off => Durability::None,
    };
    Ok(Box::new(Redb { database: Database::create(folder.join("t.redb"))?, durability }))
}

impl Redb {
    fn put(&self, rows: &[Row], durability: Durability, is_new: bool) -> Result<(), Failure> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for row in rows {
                let was_there = table.insert(row.key, (row.amount, &row.text[..]))?.is_some();
                if was_there == is_new {
                    return Err(format!("the key {} is there: {was_there}", row.key).into());
                }
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Engine for Redb {
    fn fill(&self, rows: &[Row]) -> Result<(), Failure> {
        self.put(rows, Durability::Immediate, true)
    }

    fn with_client(&self, body: &mut Body<'_>) -> Result<(), Failure> {
        body(&mut OfOne(self))
    }

    fn totals(&self) -> Result<(i64, i64), Failure> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let (mut rows, mut amounts) = (0, 0);
        for entry in table.iter()? {
            rows += 1;
            amounts += entry?.1.value().0;
        }
        Ok((rows, amounts))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        if matches!(self.durability, Durability::None) {
            // Else nothing of it would be there at the next open.
            self.put(&[], Durability::Immediate, true)?;
        }
        Ok(())
    }
}

impl Client for OfOne<'_> {
    fn insert(&mut self, row: &Row) -> Result<(), Failure> {
        self.0.put(std::slice::from_ref(row), self.0.durability, true)
    }

    fn update(&mut self, row: &Row) -> Result<(), Failure> {
        self.0.put(std::slice::from_ref(row), self.0.durability, false)
    }
}
