-- Forty-three queries on one table each, after the manner of ClickBench, on real data. A query is the text up to its
-- semicolon; its number is its place. Ties are broken, so that an answer is the same on every engine.
--
-- flights    New York's departures of 2013         336,776 rows
-- names      babies named in the US, 1880 to 2017  1,924,665 rows
-- reviews    reviews of vendors                    578,805 rows
-- air        hourly measurements around Beijing    420,768 rows
-- cities     places of more than 1000 people       144,563 rows

SELECT count(*) FROM flights;

SELECT count(*) FROM names WHERE n > 1000;

SELECT sum(distance), count(*), avg(air_time) FROM flights;

SELECT avg(prop) FROM names;

SELECT count(DISTINCT name) FROM names;

SELECT count(DISTINCT reviewer) FROM reviews;

SELECT min(written), max(written) FROM reviews;

SELECT origin, count(*) AS flights FROM flights WHERE dep_delay > 0 GROUP BY origin ORDER BY flights DESC, origin;

SELECT carrier, count(DISTINCT tailnum) AS planes FROM flights GROUP BY carrier ORDER BY planes DESC, carrier;

SELECT carrier, sum(distance) AS miles, count(*) AS flights, avg(arr_delay) AS delay, count(DISTINCT dest) AS dests
FROM flights GROUP BY carrier ORDER BY flights DESC, carrier;

SELECT dest, count(DISTINCT tailnum) AS planes FROM flights WHERE carrier <> 'UA' GROUP BY dest
ORDER BY planes DESC, dest LIMIT 10;

SELECT origin, dest, count(DISTINCT tailnum) AS planes FROM flights WHERE arr_delay > 60 GROUP BY origin, dest
ORDER BY planes DESC, origin, dest LIMIT 10;

SELECT name, sum(n) AS babies FROM names GROUP BY name ORDER BY babies DESC, name LIMIT 10;

SELECT name, count(DISTINCT year) AS years FROM names WHERE n >= 100 GROUP BY name ORDER BY years DESC, name LIMIT 10;

SELECT sex, name, sum(n) AS babies FROM names GROUP BY sex, name ORDER BY babies DESC, sex, name LIMIT 10;

SELECT reviewer, count(*) AS reviews FROM reviews GROUP BY reviewer ORDER BY reviews DESC, reviewer LIMIT 10;

SELECT reviewer, vendor, count(*) AS reviews FROM reviews GROUP BY reviewer, vendor
ORDER BY reviews DESC, reviewer, vendor LIMIT 10;

SELECT reviewer, vendor, rating, count(*) AS reviews FROM reviews GROUP BY reviewer, vendor, rating
ORDER BY reviews DESC, reviewer, vendor, rating LIMIT 10;

SELECT tailnum, month, origin, count(*) AS flights FROM flights GROUP BY tailnum, month, origin
ORDER BY flights DESC, tailnum, month, origin LIMIT 10;

SELECT vendor FROM reviews WHERE reviewer = 4711 ORDER BY vendor;

SELECT count(*) FROM names WHERE name LIKE '%lla%';

SELECT name, min(year) AS first_year, count(*) AS entries FROM names WHERE name LIKE 'Ann%' AND n > 20 GROUP BY name
ORDER BY entries DESC, name LIMIT 10;

SELECT sex, min(name) AS least, max(name) AS greatest, count(*) AS entries, count(DISTINCT name) AS names FROM names
WHERE name LIKE '%ie' AND name NOT LIKE '%b%' GROUP BY sex ORDER BY sex;

SELECT * FROM flights WHERE tailnum LIKE '%9AA%'
ORDER BY time_hour, carrier, flight, origin, dep_time, sched_dep_time LIMIT 10;

SELECT name, n FROM names WHERE year = 1999 ORDER BY n DESC, name LIMIT 10;

SELECT name FROM names WHERE n = 5 ORDER BY name, year, sex LIMIT 10;

SELECT year, name, sex FROM names WHERE n > 50000 ORDER BY year, name, sex LIMIT 10;

SELECT admin1, avg(length(name)) AS letters, count(*) AS places, min(name) AS least FROM cities WHERE admin1 <> ''
GROUP BY admin1 HAVING count(*) > 500 ORDER BY letters DESC, admin1 LIMIT 25;

SELECT substr(name, 1, 1) AS letter, avg(n) AS babies, count(*) AS entries, max(name) AS greatest FROM names
GROUP BY substr(name, 1, 1) HAVING count(*) > 10000 ORDER BY babies DESC, letter LIMIT 25;

SELECT sum(pm25), sum(pm25 + 1), sum(pm25 + 2), sum(pm25 + 3), sum(pm25 + 4), sum(pm25 + 5), sum(pm25 + 6),
    sum(pm25 + 7), sum(pm25 + 8), sum(pm25 + 9), sum(pm25 + 10), sum(pm25 + 11), sum(pm25 + 12), sum(pm25 + 13),
    sum(pm25 + 14), sum(pm25 + 15), sum(pm25 + 16), sum(pm25 + 17), sum(pm25 + 18), sum(pm25 + 19)
FROM air;

SELECT station, wd, count(*) AS hours, avg(pm25) AS pm25, max(wspm) AS wind FROM air WHERE rain > 0
GROUP BY station, wd ORDER BY hours DESC, station, wd LIMIT 10;

SELECT year, month, station, count(*) AS hours, sum(rain) AS rain, avg(temp) AS temp FROM air WHERE o3 IS NOT NULL
GROUP BY year, month, station ORDER BY rain DESC, year, month, station LIMIT 10;

SELECT lat, lon, count(*) AS places, min(name) AS least FROM cities GROUP BY lat, lon
ORDER BY places DESC, lat, lon LIMIT 10;

SELECT year, sex, name, count(*) AS entries, sum(n) AS babies FROM names GROUP BY year, sex, name
ORDER BY babies DESC, year, sex, name LIMIT 10;

SELECT 1 AS one, dest, count(*) AS flights FROM flights GROUP BY dest ORDER BY flights DESC, dest LIMIT 10;

SELECT vendor, vendor - 1 AS before, vendor - 2 AS sooner, count(*) AS reviews FROM reviews GROUP BY vendor
ORDER BY reviews DESC, vendor LIMIT 10;

SELECT dest, count(*) AS flights FROM flights
WHERE carrier = 'UA' AND month BETWEEN 6 AND 8 AND dep_delay <= 15 AND tailnum <> '' GROUP BY dest
ORDER BY flights DESC, dest LIMIT 10;

SELECT cc, count(*) AS places, avg(lat) AS lat FROM cities WHERE lat BETWEEN 35 AND 60 AND lon > -10 AND lon < 30
GROUP BY cc ORDER BY places DESC, cc LIMIT 10;

SELECT name, sum(n) AS babies FROM names WHERE year >= 1980 AND sex = 'F' AND n > 10 GROUP BY name
ORDER BY babies DESC, name LIMIT 10 OFFSET 100;

SELECT CASE WHEN dep_delay > 60 THEN 'late' WHEN dep_delay > 0 THEN 'a little late' ELSE 'in time' END AS how,
    carrier, origin, count(*) AS flights
FROM flights WHERE dep_delay IS NOT NULL
GROUP BY CASE WHEN dep_delay > 60 THEN 'late' WHEN dep_delay > 0 THEN 'a little late' ELSE 'in time' END,
    carrier, origin
ORDER BY flights DESC, how, carrier, origin LIMIT 10 OFFSET 10;

SELECT year, hour, wd, count(*) AS hours FROM air
WHERE station IN ('Dongsi', 'Gucheng', 'Tiantan') AND pm25 > 150 AND temp < 10 GROUP BY year, hour, wd
ORDER BY hours DESC, year, hour, wd LIMIT 10 OFFSET 20;

SELECT DISTINCT cc, admin1 FROM cities ORDER BY cc, admin1 LIMIT 10 OFFSET 1000;

SELECT vendor, count(*) AS reviews, avg(rating) AS rating FROM reviews WHERE rating < 5 GROUP BY vendor
HAVING count(*) >= 10 ORDER BY rating, reviews DESC, vendor LIMIT 10;
