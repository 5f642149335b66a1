-- What tables can be since they live: schemas, views, rules, alterations, layouts, few rows in the table's root.
CREATE SCHEMA s;
CREATE TABLE s.checked (id BIGINT NOT NULL CHECK (id > 0), word VARCHAR DEFAULT 'none', CONSTRAINT short CHECK (length(word) < 20));
INSERT INTO s.checked VALUES (1, 'one'), (2, DEFAULT), (3, NULL);
CREATE TABLE wide (a INT, b VARCHAR, c DOUBLE, d DATE) WITH (layout = 'pax', order_by = 'a');
INSERT INTO wide SELECT 200000 - value, 'word ' || (value % 100), value / 8.0, DATE '2000-01-01' + CAST(value % 3000 AS INT) FROM generate_series(1, 200000);
ALTER TABLE wide ADD COLUMN e INT DEFAULT 7;
ALTER TABLE wide RENAME COLUMN b TO bb;
ALTER TABLE wide DROP COLUMN c;
ALTER TABLE wide ALTER COLUMN a SET NOT NULL;
INSERT INTO wide (a, bb) VALUES (300001, 'late'), (300002, 'later');
DELETE FROM wide WHERE a < 10 OR a = 300002;
UPDATE wide SET e = -e WHERE a BETWEEN 100 AND 102;
CREATE TABLE "Odd name" (x DECIMAL(20, 3)[], y STRUCT<p INT, q VARCHAR>);
INSERT INTO "Odd name" VALUES ([1.5, NULL, -2.125], {p: 1, q: 'eins'}), (NULL, NULL), ([], {p: NULL, q: ''});
ALTER TABLE "Odd name" RENAME TO s."Odd name";
CREATE VIEW late AS SELECT a, bb FROM wide WHERE a > 199997;
CREATE VIEW s.words AS SELECT word, count(*) AS n FROM s.checked GROUP BY word;
