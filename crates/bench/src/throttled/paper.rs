//! Table 2 of Zukowski et al., ICDE 2006: eleven queries of TPC-H at scale factor 100, on disks of 80 and 350 MB/s.

/// A query, and what the paper found.
#[derive(Debug)]
pub(crate) struct PaperQuery {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    /// What is read uncompressed, in parts of what is read compressed: by column (DSM), by row group (PAX).
    pub(crate) ratios: [f64; 2],
    /// On each of [`PAPER_DISKS`].
    pub(crate) on: [PaperRun; 2],
}

/// Figures of one machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaperRun {
    /// Plain bytes made by decompression, by column.
    pub(crate) decompression_mb_per_second: f64,
    /// DSM uncompressed and compressed, PAX uncompressed and compressed.
    pub(crate) seconds: [f64; 4],
}

/// The disks of an Opteron of 2 GHz and of a Pentium 4 Xeon of 3 GHz, MB/s.
pub(crate) const PAPER_DISKS: [u64; 2] = [80, 350];

macro_rules! query {
    ($name:literal, $ratios:expr, $slow:expr, $slow_s:expr, $fast:expr, $fast_s:expr) => {
        PaperQuery {
            name: $name,
            sql: include_str!(concat!("../../../../tpch/queries/", $name, ".sql")),
            ratios: $ratios,
            on: [
                PaperRun { decompression_mb_per_second: $slow, seconds: $slow_s },
                PaperRun { decompression_mb_per_second: $fast, seconds: $fast_s },
            ],
        }
    };
}

/// In the paper's order.
pub(crate) const QUERIES: [PaperQuery; 11] = [
    query!("q01", [4.33, 2.30], 3736.0, [307.2, 69.6, 1098.9, 480.3], 4502.0, [65.9, 50.9, 265.0, 103.0]),
    query!("q03", [3.04, 1.66], 2546.0, [35.0, 11.3, 183.5, 113.6], 2306.0, [8.9, 6.0, 45.5, 27.0]),
    query!("q04", [8.15, 1.82], 3018.0, [18.2, 2.4, 115.5, 65.9], 3709.0, [4.8, 1.8, 30.2, 16.5]),
    query!("q05", [3.81, 2.24], 2119.0, [54.3, 15.3, 300.1, 155.9], 2421.0, [17.2, 16.2, 81.2, 36.7]),
    query!("q06", [4.39, 2.25], 2031.0, [48.2, 10.7, 232.7, 104.3], 2200.0, [10.8, 4.6, 51.0, 22.5]),
    query!("q07", [1.71, 2.01], 1251.0, [119.8, 72.0, 614.2, 349.4], 1457.0, [34.4, 40.8, 158.0, 76.5]),
    query!("q11", [2.14, 1.08], 3225.0, [27.0, 14.6, 180.9, 162.2], 4084.0, [18.8, 18.5, 38.8, 35.6]),
    query!("q14", [1.91, 1.94], 2888.0, [23.7, 12.2, 90.6, 46.9], 3688.0, [5.8, 4.9, 22.1, 11.5]),
    query!("q15", [2.70, 2.13], 2464.0, [44.9, 22.4, 209.8, 97.1], 2584.0, [30.3, 31.2, 49.6, 40.0]),
    query!("q18", [3.56, 2.75], 3833.0, [181.9, 50.6, 1379.7, 704.9], 4315.0, [38.9, 13.6, 419.9, 151.5]),
    query!("q21", [4.11, 2.12], 2520.0, [197.6, 46.6, 1423.5, 759.2], 2600.0, [43.2, 24.2, 338.0, 157.6]),
];
