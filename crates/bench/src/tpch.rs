//! TPC-H's tables, drawn by tpchgen: the same rows for the same scale factor on every machine.

use arrow::array::RecordBatchReader;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

/// The eight tables, smallest first.
pub const TABLES: [&str; 8] = ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"];

/// The rows of one table at a scale factor, as a stream of batches; `None` when there is no such table.
pub fn table(name: &str, scale_factor: f64) -> Option<Box<dyn RecordBatchReader + Send>> {
    Some(match name {
        "region" => Box::new(RegionArrow::new(RegionGenerator::new(scale_factor, 1, 1))),
        "nation" => Box::new(NationArrow::new(NationGenerator::new(scale_factor, 1, 1))),
        "supplier" => Box::new(SupplierArrow::new(SupplierGenerator::new(scale_factor, 1, 1))),
        "part" => Box::new(PartArrow::new(PartGenerator::new(scale_factor, 1, 1))),
        "partsupp" => Box::new(PartSuppArrow::new(PartSuppGenerator::new(scale_factor, 1, 1))),
        "customer" => Box::new(CustomerArrow::new(CustomerGenerator::new(scale_factor, 1, 1))),
        "orders" => Box::new(OrderArrow::new(OrderGenerator::new(scale_factor, 1, 1))),
        "lineitem" => Box::new(LineItemArrow::new(LineItemGenerator::new(scale_factor, 1, 1))),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{TABLES, table};

    #[test]
    fn every_table_has_rows_and_no_other_name_is_known() {
        for name in TABLES {
            let row_count: usize = table(name, 0.001).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            assert!(row_count > 0, "{name}");
        }
        assert!(table("lineitems", 0.001).is_none());
    }
}
