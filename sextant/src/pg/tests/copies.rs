//! Tests of COPY … FROM STDIN: its commits and its errors.

use super::raw::{Raw, message, query, sync};
use super::*;

#[tokio::test]
async fn copy_in_stores_batches_and_names_the_bad_line() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let copy = async |sql: &str, lines: String| {
        let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>(sql).await.unwrap());
        // The pieces have arbitrary boundaries.
        for piece in lines.as_bytes().chunks(1000.max(lines.len() / 500)) {
            sink.send(Bytes::copy_from_slice(piece)).await?;
        }
        sink.as_mut().finish().await
    };
    let line = |n: usize| format!("{{\"key\":\"k{n}\",\"country\":\"FR\",\"population\":{n}}}\n");
    let lines: String = (0..5000).map(line).collect();
    let sql = "COPY b FROM STDIN (FORMAT jsonl, id 'key')";
    assert_eq!(copy(sql, format!("{lines}\n\\.\n")).await.unwrap(), 5000);
    assert!(cluster.memory.writes_max.load(Ordering::Relaxed) > 1, "in batches");
    let count = "SELECT count(*), max(population) FROM cities WHERE country = 'FR'";
    assert_eq!(simple(&client, count).await, ["5000|4999"]);

    let lines: String =
        (5000..7500).map(line).chain(["{\"nokey\":1}\n".into(), line(9000)]).collect();
    let error = copy(sql, lines).await.unwrap_err();
    assert_eq!(state(&error), "22P02");
    let message = error.as_db_error().unwrap().message().to_owned();
    assert!(message.contains("line 2501") && message.contains("nothing is stored"), "{message}");
    assert_eq!(simple(&client, count).await, ["5000|4999"], "all or nothing");

    // A document over the limit, and a line that exceeds any document.
    for bytes in [proto::value::DOCUMENT_BYTES_MAX, crate::pg::message::frame::MESSAGE_BYTES_MAX] {
        let long = format!("{{\"key\":\"long\",\"x\":\"{}\"}}\n", "x".repeat(bytes));
        let lines = (0..10).map(line).chain([long, line(9000)]).collect();
        let error = copy(sql, lines).await.unwrap_err();
        assert_eq!(state(&error), "54000");
        let message = error.as_db_error().unwrap().message().to_owned();
        assert!(message.contains("line 11") && message.contains("nothing is stored"), "{message}");
    }

    assert!(client.copy_in::<_, Bytes>("COPY nothing FROM STDIN").await.is_err());
    assert_eq!(copy(sql, line(9001)).await.unwrap(), 1, "the session goes on");
}

#[tokio::test]
async fn a_copy_that_times_out_before_its_end_has_stored_nothing() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("SET statement_timeout = '300ms'").await.unwrap();
    let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>("COPY b FROM STDIN").await.unwrap());
    // Five pieces of the data and a little more: they wait for the end.
    let pad = "x".repeat(1024 - r#"{"id":"k0000","pad":""}"#.len() - 1);
    let line = |n: usize| format!("{{\"id\":\"k{n:04}\",\"pad\":\"{pad}\"}}\n");
    let lines: String = (0..5 * 512 + 100).map(line).collect();
    sink.send(Bytes::from(lines)).await.unwrap();
    sink.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let error = sink.as_mut().finish().await.unwrap_err();
    assert_eq!(state(&error), "57014");
    let message = error.as_db_error().unwrap().message().to_owned();
    assert!(message.contains("nothing is stored"), "{message}");
}

fn data(lines: &str) -> Vec<u8> {
    message(b'd', lines.as_bytes())
}

/// Returns lines whose documents have the ids of a range.
fn lines(ids: std::ops::Range<usize>) -> String {
    ids.map(|n| format!("{{\"id\":\"k{n}\"}}\n")).collect()
}

/// Runs a COPY of these data messages in a raw session, and returns the answers.
async fn copied(raw: &mut Raw, sql: &str, parts: &[String]) -> String {
    raw.send(&[query(sql)]).await;
    for part in parts {
        raw.send(&[data(part)]).await;
    }
    raw.send(&[message(b'c', b"")]).await;
    raw.told().await
}

#[tokio::test]
async fn a_copy_is_one_commit_up_to_its_bounds_and_says_if_it_is_longer() {
    const MOST: usize = 100_000;
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let mut raw = Raw::open(&cluster).await;
    let ids = async |range: std::ops::Range<usize>| {
        let ids: Vec<_> = [range.start, range.end - 1].map(|n| format!("'k{n}'")).into();
        let sql = format!("SELECT count(*) FROM b WHERE id IN ({})", ids.join(","));
        let sql = sql.replace("count(*)", "id");
        simple(&client, &sql).await.len()
    };
    let bad = "bad\n".to_owned();
    let pieces = |from: usize, to: usize| -> Vec<String> {
        let each = (from..to).step_by(1000);
        each.map(|start| lines(start..to.min(start + 1000))).collect()
    };
    // The longest COPY that is one commit, with a bad line after it, and without.
    let sql = "COPY b FROM STDIN";
    let mut parts = pieces(0, MOST - 10);
    parts.push(bad.clone());
    assert_eq!(copied(&mut raw, sql, &parts).await, "22P02, I");
    assert_eq!((ids(0..MOST - 10).await, cluster.memory.uncommitted()), (0, 0));
    assert_eq!(copied(&mut raw, sql, &pieces(0, MOST)).await, "COPY 100000, I");
    assert_eq!(ids(0..MOST).await, 2);
    // A longer COPY is stored in parts.
    let mut parts = pieces(MOST, 2 * MOST + 1000);
    parts.push(bad.clone());
    let told = copied(&mut raw, sql, &parts).await;
    assert!(told.starts_with("NOTICE: COPY b: its first "), "{told}");
    assert!(told.ends_with("22P02, I"), "{told}");
    assert_eq!(ids(MOST..2 * MOST + 1000).await, 2);
    // The NOTICE is sent before the end, also if only the end of the data shows that there are so many.
    let told = copied(&mut raw, sql, &pieces(5 * MOST, 6 * MOST + 1000)).await;
    assert!(told.starts_with("NOTICE: COPY b: its first "), "{told}");
    assert!(told.ends_with(", COPY 101000, I"), "{told}");
    // Unless `atomic` requires one commit.
    let sql = "COPY b FROM STDIN WITH (atomic = on)";
    let mut parts = pieces(3 * MOST, 4 * MOST + 1000);
    parts.push(bad);
    assert_eq!(copied(&mut raw, sql, &parts).await, "22P02, I");
    assert_eq!((ids(3 * MOST..4 * MOST + 1000).await, cluster.memory.uncommitted()), (0, 0));
}

#[tokio::test]
async fn a_copy_is_a_part_of_the_transaction_of_its_text_or_of_its_messages() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let mut raw = Raw::open(&cluster).await;
    let found = async || simple(&client, "SELECT id FROM b WHERE id IN ('k0', 'k1')").await.len();
    let one = [lines(0..1)];
    let insert = "INSERT INTO b (id, doc) VALUES ('k1', '{}')";
    for (sql, told) in [
        ("COPY b FROM STDIN; SELECT x", "COPY 1, 42703, I".to_owned()),
        (&*format!("{insert}; COPY b FROM STDIN; SELECT x"), "INSERT 0 1, COPY 1, 42703, I".into()),
    ] {
        assert_eq!(copied(&mut raw, sql, &one).await, told);
        assert_eq!(found().await, 0, "{sql}");
    }
    let sql = format!("SELECT 1; {insert}; COPY b FROM STDIN");
    let told = "(1), SELECT 1, INSERT 0 1, COPY 1, I";
    assert_eq!(copied(&mut raw, &sql, &one).await, told);
    assert_eq!(found().await, 2);
    client.batch_execute("DELETE FROM b WHERE id IN ('k0', 'k1')").await.unwrap();
    let begun = cluster.memory.transactions_begun();
    for (after, told, stored) in [
        (vec![sync()], "COPY 1, I", 1),
        ([raw::parse("SELECT x"), sync()].into(), "COPY 1, 42703, I", 0),
    ] {
        raw.send(&[raw::parse("COPY b FROM STDIN"), raw::bind(), raw::execute(0), sync()]).await;
        raw.send(&[data(&one[0]), message(b'c', b"")]).await;
        raw.send(&after).await;
        assert_eq!(raw.told().await, told);
        assert_eq!(found().await, stored);
        client.batch_execute("DELETE FROM b WHERE id IN ('k0', 'k1')").await.unwrap();
    }
    assert_eq!(cluster.memory.transactions_begun(), begun + 1, "the one before Sync is alone");
    // Without room for a transaction, what others follow is not stored by itself.
    cluster.memory.set_full(true);
    for (after, told, stored) in [
        (vec![sync()], "COPY 1, I", 1),
        ([raw::parse(insert), raw::bind(), raw::execute(0), sync()].into(), "53300, I", 0),
    ] {
        raw.send(&[raw::parse("COPY b FROM STDIN"), raw::bind(), raw::execute(0)]).await;
        raw.send(&[data(&one[0]), message(b'c', b"")]).await;
        raw.send(&after).await;
        assert_eq!(raw.told().await, told);
        assert_eq!(found().await, stored);
        client.batch_execute("DELETE FROM b WHERE id IN ('k0', 'k1')").await.unwrap();
    }
}

/// When the transaction's memory is full, the batches that it has accepted are committed, and the
/// next batch is not among them.
#[tokio::test]
async fn a_copy_whose_transaction_has_no_more_room_says_how_many_documents_are_stored() {
    const PIECE: usize = 500;
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let pad = "x".repeat(4_000);
    let line = |n| format!("{{\"id\":\"k{n}\",\"country\":\"FR\",\"pad\":\"{pad}\"}}\n");
    let piece = |n: usize| data(&(n * PIECE..(n + 1) * PIECE).map(line).collect::<String>());
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[query("COPY b FROM STDIN")]).await;
    // More than a session holds by itself.
    raw.send(&(0..6).map(piece).collect::<Vec<_>>()).await;
    let taken = async {
        while cluster.memory.uncommitted() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), taken).await.expect("a transaction has it");
    cluster.memory.set_full(true);
    let first = cluster.memory.uncommitted();
    raw.send(&(6..9).map(piece).collect::<Vec<_>>()).await;
    raw.send(&[data("bad\n"), message(b'c', b"")]).await;
    let told = raw.told().await;
    assert!(told.starts_with(&format!("NOTICE: COPY b: its first {first} documents")), "{told}");
    assert!(told.ends_with(", 22P02, I"), "{told}");
    let count = simple(&client, "SELECT count(*) FROM cities WHERE country = 'FR'").await;
    let count: usize = count[0].parse().expect("a number");
    assert!(count >= first, "{first}: {count}");
}
