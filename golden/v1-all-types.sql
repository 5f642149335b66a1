-- What golden/v1-all-types.sinter holds. It was written once, by version 0.1: sinter golden/v1-all-types.sinter < this
-- file. A golden file is never written again: a later format gets a file of its own, with a script beside it.

CREATE TABLE numbers (id INT, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, u8 TINYINT UNSIGNED, u16 SMALLINT UNSIGNED, u32 INT UNSIGNED, u64 BIGINT UNSIGNED, f32 REAL, f64 DOUBLE, d9 DECIMAL(9, 2), d18 DECIMAL(18, 6), d38 DECIMAL(38, 10), b BOOLEAN);
INSERT INTO numbers VALUES (1, -128, -32768, -2147483648, -9223372036854775808, 0, 0, 0, 0, '-0.0', '5e-324', -9999999.99, -999999999999.999999, -9999999999999999999999999999.9999999999, true);
INSERT INTO numbers VALUES (2, 127, 32767, 2147483647, 9223372036854775807, 255, 65535, 4294967295, 18446744073709551615, '3.4028235e38', 'NaN', 9999999.99, 999999999999.999999, 9999999999999999999999999999.9999999999, false);
INSERT INTO numbers (id) VALUES (3);
CREATE TABLE texts_and_times (id INT, s VARCHAR NOT NULL DEFAULT 'none', x BLOB, u UUID, d DATE, t TIME, t9 TIME(9), ts TIMESTAMP, ns TIMESTAMP(9), tz TIMESTAMP WITH TIME ZONE, i INTERVAL);
INSERT INTO texts_and_times VALUES (1, 'héllo 日本 🦀', X'00FF', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '0001-01-01', '00:00:00', '23:59:59.999999999', '1969-12-31 23:59:59.999999', '2262-04-11 23:47:16.854775807', '2024-06-01 12:00:00+05:30', '13 months -2 days 3.5 seconds');
INSERT INTO texts_and_times VALUES (2, '', X'', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '9999-12-31', '23:59:59.999999', '00:00:00', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:00.000000001', '1970-01-01 00:00:00+00:00', '0 seconds');
INSERT INTO texts_and_times (id) VALUES (3);
CREATE TABLE nested (id INT, l INT[], ll VARCHAR[][], s STRUCT<a INT, b VARCHAR>, ls STRUCT<x DOUBLE>[]);
INSERT INTO nested VALUES (1, [1, NULL, 3], [['a'], ['b', NULL]], struct(1 AS a, 'x' AS b), [struct(1.5 AS x)]), (2, [], [[]], struct(NULL AS a, '' AS b), NULL), (3, NULL, NULL, NULL, []);

-- Three row groups, a few rows of which are deleted.
CREATE TABLE groups (id BIGINT NOT NULL, some INT, word VARCHAR);
INSERT INTO groups SELECT value, CASE WHEN value / 1000 % 3 = 0 THEN value / 1000 END, 'word ' || (value / 70000) FROM generate_series(1, 300000);
DELETE FROM groups WHERE id IN (2, 131073) OR id BETWEEN 5000 AND 5100;

-- Every scheme, forced.
CREATE TABLE scheme_raw (id INT, v BIGINT) WITH (compression_v = 'raw');
INSERT INTO scheme_raw SELECT value, CASE WHEN value % 9 <> 0 THEN value % 60 END FROM generate_series(1, 2000);
CREATE TABLE scheme_constant (id INT, v INT) WITH (compression_v = 'constant');
INSERT INTO scheme_constant SELECT value, 7 FROM generate_series(1, 2000);
CREATE TABLE scheme_rle (id INT, v INT) WITH (compression_v = 'rle');
INSERT INTO scheme_rle SELECT value, CASE WHEN value % 9 <> 0 THEN value / 100 END FROM generate_series(1, 2000);
CREATE TABLE scheme_bitpack (id INT, v BIGINT) WITH (compression_v = 'bitpack');
INSERT INTO scheme_bitpack SELECT value, CASE WHEN value % 9 <> 0 THEN value % 60 END FROM generate_series(1, 2000);
CREATE TABLE scheme_for (id INT, v BIGINT) WITH (compression_v = 'for');
INSERT INTO scheme_for SELECT value, CASE WHEN value % 9 <> 0 THEN value % 60 END FROM generate_series(1, 2000);
CREATE TABLE scheme_pfor (id INT, v BIGINT) WITH (compression_v = 'pfor');
INSERT INTO scheme_pfor SELECT value, CASE WHEN value % 9 <> 0 THEN CASE WHEN value % 500 = 0 THEN value * 1000000 ELSE value % 60 END END FROM generate_series(1, 2000);
CREATE TABLE scheme_delta (id INT, v BIGINT) WITH (compression_v = 'delta');
INSERT INTO scheme_delta SELECT value, CASE WHEN value % 9 <> 0 THEN value % 60 END FROM generate_series(1, 2000);
CREATE TABLE scheme_pfor_delta (id INT, v BIGINT) WITH (compression_v = 'pfor_delta');
INSERT INTO scheme_pfor_delta SELECT value, CASE WHEN value % 9 <> 0 THEN CASE WHEN value % 500 = 0 THEN value * 1000000 ELSE value % 60 END END FROM generate_series(1, 2000);
CREATE TABLE scheme_dict (id INT, v BIGINT) WITH (compression_v = 'dict');
INSERT INTO scheme_dict SELECT value, CASE WHEN value % 9 <> 0 THEN value % 60 END FROM generate_series(1, 2000);
CREATE TABLE scheme_fsst (id INT, v VARCHAR) WITH (compression_v = 'fsst');
INSERT INTO scheme_fsst SELECT value, CASE WHEN value % 9 <> 0 THEN CAST(value % 700 AS VARCHAR) || '.125' END FROM generate_series(1, 2000);
CREATE TABLE scheme_alp (id INT, v DOUBLE) WITH (compression_v = 'alp');
INSERT INTO scheme_alp SELECT value, CASE WHEN value % 9 <> 0 THEN CAST(value % 700 AS DOUBLE) / 8 END FROM generate_series(1, 2000);
CREATE TABLE scheme_alp_rd (id INT, v DOUBLE) WITH (compression_v = 'alp_rd');
INSERT INTO scheme_alp_rd SELECT value, CASE WHEN value % 9 <> 0 THEN CAST(value AS DOUBLE) / 7 END FROM generate_series(1, 2000);
CHECKPOINT;
