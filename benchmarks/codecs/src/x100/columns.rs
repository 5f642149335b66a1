//! Columns of TPC-H's lineitem, as a column store keeps them.

use crate::Failure;
use sinter_codec::{ROW_GROUP_LEN, ValuesBuf};
use tpchgen::generators::LineItemGenerator;

/// A column and its values, in the order of the table.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) blocks: Vec<ValuesBuf>,
}

/// The columns of at least one row group and at most `row_count` rows, cut into full row groups.
pub(crate) fn lineitem(row_count: usize) -> Result<Vec<Column>, Failure> {
    let groups = (row_count / ROW_GROUP_LEN).max(1);
    let scale_factor = (groups * ROW_GROUP_LEN) as f64 / 5_900_000.0 + 0.001;
    let mut columns: Vec<Column> = Vec::new();
    for name in [
        "l_orderkey",
        "l_partkey",
        "l_suppkey",
        "l_linenumber",
        "l_quantity",
        "l_extendedprice",
        "l_discount",
        "l_tax",
        "l_shipdate",
        "l_commitdate",
        "l_receiptdate",
        "l_returnflag",
        "l_shipinstruct",
        "l_shipmode",
        "l_comment",
    ] {
        columns.push(Column { name, blocks: Vec::new() });
    }
    let generator = LineItemGenerator::new(scale_factor, 1, 1);
    for (row, item) in generator.iter().take(groups * ROW_GROUP_LEN).enumerate() {
        if row % ROW_GROUP_LEN == 0 {
            columns.iter_mut().for_each(|column| column.blocks.push(empty(column.name)));
        }
        let mut columns = columns.iter_mut().map(|column| &mut column.blocks[row / ROW_GROUP_LEN]);
        let mut push = |value: Cell<'_>| value.push(columns.next().expect("a column for each cell"));
        push(Cell::Wide(item.l_orderkey));
        push(Cell::Wide(item.l_partkey));
        push(Cell::Wide(item.l_suppkey));
        push(Cell::Narrow(item.l_linenumber));
        push(Cell::Wide(item.l_quantity));
        push(Cell::Wide(item.l_extendedprice.into_inner()));
        push(Cell::Wide(item.l_discount.into_inner()));
        push(Cell::Wide(item.l_tax.into_inner()));
        push(Cell::Narrow(item.l_shipdate.to_unix_epoch()));
        push(Cell::Narrow(item.l_commitdate.to_unix_epoch()));
        push(Cell::Narrow(item.l_receiptdate.to_unix_epoch()));
        push(Cell::Text(item.l_returnflag));
        push(Cell::Text(item.l_shipinstruct));
        push(Cell::Text(item.l_shipmode));
        push(Cell::Text(item.l_comment));
    }
    if columns.iter().any(|column| column.blocks.iter().any(|block| block.len() != ROW_GROUP_LEN)) {
        return Err("the generator made too few rows".into());
    }
    Ok(columns)
}

enum Cell<'a> {
    Wide(i64),
    Narrow(i32),
    Text(&'a str),
}

impl Cell<'_> {
    fn push(self, values: &mut ValuesBuf) {
        match (self, values) {
            (Cell::Wide(value), ValuesBuf::I64(values)) => values.push(value),
            (Cell::Narrow(value), ValuesBuf::I32(values)) => values.push(value),
            (Cell::Text(text), ValuesBuf::Bytes(texts)) => texts.push(text.as_bytes()),
            (_, values) => panic!("a cell for a column of {}", values.physical().name()),
        }
    }
}

fn empty(name: &str) -> ValuesBuf {
    match name {
        "l_linenumber" | "l_shipdate" | "l_commitdate" | "l_receiptdate" => ValuesBuf::I32(Vec::new()),
        "l_returnflag" | "l_shipinstruct" | "l_shipmode" | "l_comment" => ValuesBuf::Bytes(Default::default()),
        _ => ValuesBuf::I64(Vec::new()),
    }
}
