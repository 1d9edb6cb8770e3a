//! Tests of statements over columns that can be NULL or MISSING, which results do not distinguish.

use super::*;

/// Returns a client of an index whose second column is NULL in some documents and MISSING in
/// others; the following columns have equal values.
async fn absent(cluster: &Cluster) -> (Client, Task) {
    let (client, task) = cluster.client().await;
    let sql = "CREATE BUCKET b; CREATE INDEX i ON b (a, c, d, e)";
    client.batch_execute(sql).await.expect("made");
    let documents = [
        r#"{"a":1,"d":5,"e":1}"#,
        r#"{"a":1,"d":7,"e":null}"#,
        r#"{"a":1,"c":null,"d":5,"e":2}"#,
        r#"{"a":1,"c":null,"d":6}"#,
        r#"{"a":1,"c":null,"d":7}"#,
        r#"{"a":1,"c":3,"d":5}"#,
        r#"{"a":2,"d":1}"#,
        r#"{"a":2,"c":null,"d":null}"#,
        r#"{"a":2}"#,
    ];
    for (n, document) in documents.iter().enumerate() {
        let sql = format!("INSERT INTO b (id, doc) VALUES ('{n}', '{document}')");
        client.batch_execute(&sql).await.expect("written");
    }
    (client, task)
}

#[tokio::test]
async fn distinct_has_null_once_behind_a_column_that_is_null_and_missing() {
    let cluster = Cluster::new();
    let (client, _task) = absent(&cluster).await;
    let all = ["1|~|5", "1|~|6", "1|~|7", "1|3|5", "2|~|~", "2|~|1"];
    for (sql, expected) in [
        ("SELECT DISTINCT a, c, d FROM i", &all[..]),
        ("SELECT DISTINCT a, c, d FROM i ORDER BY a, c, d", &all[..]),
        ("SELECT DISTINCT a, c, d FROM i ORDER BY a LIMIT 3 OFFSET 2", &all[2..5]),
        ("SELECT DISTINCT a, c, d FROM i LIMIT 0", &[]),
        ("SELECT DISTINCT c, d FROM i WHERE a = 1", &["~|5", "~|6", "~|7", "3|5"]),
        ("SELECT DISTINCT d FROM i WHERE a = 1 AND c IS NULL", &["5", "6", "7"]),
        ("SELECT DISTINCT d FROM i WHERE a = 1 AND c IS NULL AND d > 5", &["6", "7"]),
    ] {
        assert_eq!(simple(&client, sql).await, expected, "{sql}");
    }
    let reversed: Vec<_> = all.iter().rev().copied().collect();
    let sql = "SELECT DISTINCT a, c, d FROM i ORDER BY a DESC, c DESC, d DESC";
    assert_eq!(simple(&client, sql).await, reversed);
    let four = "SELECT DISTINCT a, c, d, e FROM i WHERE a = 2";
    assert_eq!(simple(&client, four).await, ["2|~|~|~", "2|~|1|~"]);
}

#[tokio::test]
async fn is_null_is_one_value_for_the_order_behind_it() {
    let cluster = Cluster::new();
    let (client, _task) = absent(&cluster).await;
    for (sql, expected) in [
        (
            "SELECT d, id FROM i WHERE a = 1 AND c IS NULL ORDER BY d, e",
            &["5|0", "5|2", "6|3", "7|4", "7|1"][..],
        ),
        ("SELECT d FROM i WHERE a = 1 AND c IS NULL ORDER BY d DESC LIMIT 2 OFFSET 1", &["7", "6"]),
        ("SELECT id FROM i WHERE a = 1 AND c IS NULL AND d = 7 ORDER BY e", &["4", "1"]),
    ] {
        assert_eq!(simple(&client, sql).await, expected, "{sql}");
    }
    let select =
        client.prepare("SELECT d FROM i WHERE a = $1::int8 AND c IS NULL ORDER BY d").await;
    let rows = client.query(&select.expect("valid"), &[&1i64]).await.expect("rows");
    assert_eq!(rows.len(), 5);
    let explained = simple(&client, "EXPLAIN SELECT DISTINCT a, c, d FROM i LIMIT 3").await;
    assert!(explained.iter().any(|line| line.contains("Merged: 2 scans")), "{explained:?}");
    assert!(explained.iter().any(|line| line == "  Limit: 3"), "{explained:?}");
}
