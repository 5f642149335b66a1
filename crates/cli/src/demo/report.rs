//! What each column of a table costs, from `storage('table')`.

use super::Stage;
use crate::failure::Result;
use crate::output::{Align, Cells, Column, Frame, Grid, grouped};
use crate::session::{Session, quote_text};
use sinterdb::Error;
use std::io::Write;

/// One column's line of `SHOW STORAGE`.
pub(super) struct Cost {
    column: String,
    ty: String,
    scheme: String,
    pub(super) plain_bytes: u64,
    pub(super) bytes: u64,
}

/// The costs of all columns, in the table's order.
pub(super) fn costs(session: &Session, table: &str) -> Result<Vec<Cost>> {
    let sql = format!(
        "SELECT \"column\", type, scheme, CAST(plain_bytes AS BIGINT), CAST(bytes AS BIGINT) FROM storage({})",
        quote_text(table)
    );
    let mut costs = Vec::new();
    for batch in session.rows(&sql)? {
        let schema = batch.schema();
        let cells = Cells::new(&batch, &schema)?;
        for row in 0..cells.row_count() {
            let number = |column: usize| -> Result<u64> {
                let text = cells.text(column, row)?;
                text.parse().map_err(|_| Error::Internal(format!("storage: {text:?} is no count of bytes")).into())
            };
            costs.push(Cost {
                column: cells.text(0, row)?,
                ty: cells.text(1, row)?,
                scheme: cells.text(2, row)?,
                plain_bytes: number(3)?,
                bytes: number(4)?,
            });
        }
    }
    Ok(costs)
}

/// The table of costs, with a total.
pub(super) fn print(stage: &mut Stage, table: &str) -> Result<()> {
    let costs = costs(&stage.session, table)?;
    let heading = |name: &str, align| Column { name: name.into(), type_name: String::new(), align };
    let columns = vec![
        heading(table, Align::Left),
        heading("type", Align::Left),
        heading("scheme", Align::Left),
        heading("plain", Align::Right),
        heading("pressed", Align::Right),
        heading("ratio", Align::Right),
    ];
    let line = |name: &str, ty: &str, scheme: &str, plain: u64, pressed: u64| {
        let values =
            [name.into(), ty.to_lowercase(), scheme.into(), bytes(plain), bytes(pressed), ratio(plain, pressed)];
        values.map(Some).to_vec()
    };
    let mut rows: Vec<_> =
        costs.iter().map(|cost| line(&cost.column, &cost.ty, &cost.scheme, cost.plain_bytes, cost.bytes)).collect();
    let plain = costs.iter().map(|cost| cost.plain_bytes).sum();
    let pressed = costs.iter().map(|cost| cost.bytes).sum();
    rows.push(line("total", "", "", plain, pressed));
    writeln!(stage.out)?;
    let grid = Grid { columns, rows, gap_before: None };
    grid.write(Frame::Open, stage.screen.width, stage.screen.colour, &mut stage.out)?;
    Ok(())
}

/// `1.23 MB`: three digits.
pub(super) fn bytes(count: u64) -> String {
    let (mut value, mut unit) = (count as f64, "B");
    for larger in ["kB", "MB", "GB", "TB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    match unit {
        "B" => format!("{count} B"),
        _ if value < 9.995 => format!("{value:.2} {unit}"),
        _ if value < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// How many times smaller, such as `4.2x`.
pub(super) fn ratio(plain: u64, pressed: u64) -> String {
    match plain as f64 / pressed as f64 {
        _ if pressed == 0 => "-".into(),
        ratio if ratio < 99.95 => format!("{ratio:.1}x"),
        ratio => format!("{}x", grouped(ratio.round() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_that_mean_something() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_234), "1.23 kB");
        assert_eq!(bytes(12_340_000), "12.3 MB");
        assert_eq!(bytes(999_900_000), "1.00 GB");
        assert_eq!(ratio(10, 4), "2.5x");
        assert_eq!(ratio(1_000_000, 100), "10,000x");
    }
}
