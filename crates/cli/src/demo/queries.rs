//! The questions of the demo.

/// A question, and how SQL puts it.
pub(super) struct Question {
    pub(super) title: &'static str,
    pub(super) sql: &'static str,
}

/// Three about the flights, four of TPC-H.
pub(super) const QUERIES: &[Question] = &[
    Question {
        title: "How many long flights left more than an hour late?",
        sql: "\
SELECT count(*) AS flights, round(avg(dep_delay), 1) AS minutes_late, max(dep_delay) AS latest
FROM flights WHERE dep_delay > 60 AND distance > 2000",
    },
    Question {
        title: "Which airlines arrive late?",
        sql: "\
SELECT name, count(*) AS flights, round(avg(arr_delay), 1) AS minutes_late
FROM flights JOIN airlines ON flights.carrier = airlines.carrier
GROUP BY name ORDER BY minutes_late DESC LIMIT 5",
    },
    Question {
        title: "Does fog delay departures?",
        sql: "\
SELECT CASE WHEN visib < 2 THEN 'fog' WHEN visib < 8 THEN 'haze' ELSE 'clear' END AS sight,
       count(*) AS flights, round(avg(dep_delay), 1) AS minutes_late
FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
GROUP BY sight ORDER BY minutes_late DESC",
    },
    Question {
        title: "TPC-H Q6: what would fewer discounts have earned?",
        sql: "\
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    },
    Question {
        title: "TPC-H Q1: the pricing summary",
        sql: "\
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, avg(l_discount) AS avg_disc, count(*) AS lines
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
    },
    Question {
        title: "TPC-H Q3: the largest orders not yet shipped",
        sql: "\
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 5",
    },
    Question {
        title: "TPC-H Q5: revenue of suppliers who sell in their own country",
        sql: "\
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
  AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name ORDER BY revenue DESC",
    },
];
