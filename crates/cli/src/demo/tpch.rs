//! TPC-H's eight tables, made by `tpchgen` in this process: orders of a wholesaler, a benchmark that everybody knows.

use super::load::Source;
use sinterdb::Error;
use sinterdb::arrow::array::RecordBatchReader;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

/// The tables at a scale factor, the largest first.
pub(super) fn tables(sf: f64) -> Vec<Source> {
    let rows = |at_one: f64| (at_one * sf).round() as u64;
    vec![
        table("lineitem", rows(6_000_000.0), LineItemArrow::new(LineItemGenerator::new(sf, 1, 1))),
        table("orders", rows(1_500_000.0), OrderArrow::new(OrderGenerator::new(sf, 1, 1))),
        table("partsupp", rows(800_000.0), PartSuppArrow::new(PartSuppGenerator::new(sf, 1, 1))),
        table("part", rows(200_000.0), PartArrow::new(PartGenerator::new(sf, 1, 1))),
        table("customer", rows(150_000.0), CustomerArrow::new(CustomerGenerator::new(sf, 1, 1))),
        table("supplier", rows(10_000.0), SupplierArrow::new(SupplierGenerator::new(sf, 1, 1))),
        table("nation", 25, NationArrow::new(NationGenerator::new(sf, 1, 1))),
        table("region", 5, RegionArrow::new(RegionGenerator::new(sf, 1, 1))),
    ]
}

fn table(name: &'static str, rows: u64, batches: impl RecordBatchReader + 'static) -> Source {
    let schema = batches.schema();
    let batches = batches.map(|batch| batch.map_err(|error| Error::Internal(format!("tpchgen: {error}"))));
    Source { name, schema, rows, batches: Box::new(batches) }
}
