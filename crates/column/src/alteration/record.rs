//! Alterations in the log (docs/format/table.md, "Log record 21").

use super::Alteration;
use crate::press::press_column;
use crate::wire::{Reader, Writer};
use crate::{Check, ColumnSchema, ColumnTable, Index, Result};
use arrow::array::Array;
use sinter_codec::Choice;
use sinter_exec::{Pinned, edge};
use sinter_storage::{ObjectId, Record, RecordTag};

// Kind in the record => alteration; a kind is never given twice, nor reused.
const ADD_COLUMN: u8 = 1;
const DROP_COLUMN: u8 = 2;
const RENAME_COLUMN: u8 = 3;
const SET_NULLABLE: u8 = 4;
const SET_DEFAULT: u8 = 5;
const ADD_CHECK: u8 = 6;
const DROP_CHECK: u8 = 7;
const ADD_INDEX: u8 = 8;
const DROP_INDEX: u8 = 9;

impl Alteration {
    /// The record that leads to `version` of the schema.
    pub(crate) fn record(&self, table: ObjectId, version: u32) -> Result<Record> {
        let mut out = Writer::default();
        out.u32(version);
        match self {
            Alteration::AddColumn { column, fill } => {
                out.u8(ADD_COLUMN);
                column.write(&mut out);
                let fill = fill.as_ref().filter(|fill| !fill.is_null(0));
                out.u8(u8::from(fill.is_some()));
                if let Some(fill) = fill {
                    out.bytes(&press_column(fill, &column.ty, &Choice::Raw)?.0);
                }
            }
            Alteration::DropColumn { name } => {
                out.u8(DROP_COLUMN);
                out.text(name);
            }
            Alteration::RenameColumn { from, to } => {
                out.u8(RENAME_COLUMN);
                out.text(from);
                out.text(to);
            }
            Alteration::SetNullable { column, nullable } => {
                out.u8(SET_NULLABLE);
                out.text(column);
                out.u8(u8::from(*nullable));
            }
            Alteration::SetDefault { column, default } => {
                out.u8(SET_DEFAULT);
                out.text(column);
                out.optional_text(default.as_deref());
            }
            Alteration::AddCheck { check } => {
                out.u8(ADD_CHECK);
                check.write(&mut out);
            }
            Alteration::DropCheck { name } => {
                out.u8(DROP_CHECK);
                out.text(name);
            }
            Alteration::AddIndex { index, of_rows } => {
                out.u8(ADD_INDEX);
                index.write(&mut out);
                out.u8(u8::from(*of_rows));
            }
            Alteration::DropIndex { name } => {
                out.u8(DROP_INDEX);
                out.text(name);
            }
        }
        Ok(Record { tag: RecordTag::TABLE_ALTERED, object: table, payload: out.into_bytes() })
    }

    /// The alteration of such a record; `None` where the table has it already.
    pub(crate) fn read(table: &ColumnTable, payload: &[u8]) -> Result<Option<Alteration>> {
        let mut input = Reader::new(table.name(), payload);
        let (version, known) = (input.u32()?, table.schema().version);
        if version <= known {
            return Ok(None);
        }
        if version - known > 1 {
            return Err(input.damaged(format!("alteration {version} follows alteration {known}")));
        }
        let alteration = match input.u8()? {
            ADD_COLUMN => {
                let column = ColumnSchema::read(&mut input)?;
                let fill = match input.flag()? {
                    true => {
                        Some(edge::decode_segment(&Pinned::from_vec(input.bytes()?.to_vec()), &column.ty, 0..1, None)?)
                    }
                    false => None,
                };
                Alteration::AddColumn { column, fill }
            }
            DROP_COLUMN => Alteration::DropColumn { name: input.text()? },
            RENAME_COLUMN => Alteration::RenameColumn { from: input.text()?, to: input.text()? },
            SET_NULLABLE => Alteration::SetNullable { column: input.text()?, nullable: input.flag()? },
            SET_DEFAULT => Alteration::SetDefault { column: input.text()?, default: input.optional_text()? },
            ADD_CHECK => Alteration::AddCheck { check: Check::read(&mut input)? },
            DROP_CHECK => Alteration::DropCheck { name: input.text()? },
            ADD_INDEX => Alteration::AddIndex { index: Index::read(&mut input)?, of_rows: input.flag()? },
            DROP_INDEX => Alteration::DropIndex { name: input.text()? },
            other => return Err(input.damaged(format!("alteration {other} is unknown; a newer SinterDB wrote it"))),
        };
        input.end()?;
        Ok(Some(alteration))
    }
}
