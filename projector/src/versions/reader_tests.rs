use futures::StreamExt;
use proto::env::OpenMode;
use proto::model::ids::vbucket_of;

use super::*;

fn put(env: &Env, path: &Path, text: &str) {
    let file = env.fs.open(path, OpenMode::Create).expect("created");
    file.write_all_at(text.as_bytes(), 0).expect("written");
}

/// Returns the rows of some partitions from the files of a pattern, each with its partition and its
/// number in it, and the counts of all rows.
async fn read(
    (env, dir): (&Env, &Path),
    pattern: &str,
    (wanted, partitions): (&[u16], u16),
) -> Result<(Vec<(String, u16, u64)>, RowCounter)> {
    let files = Files { pattern: pattern.into(), id: "id".into() };
    let wanted = (wanted.iter().copied().map(VbucketId).collect(), partitions);
    let reader = VersionReader::new(Arc::clone(&env.fs), Some(dir), &files, wanted, 100)?;
    let mut rows = RowCounter::new(reader.files(), partitions);
    let mut batches = std::pin::pin!(reader.batches(env));
    let mut all = Vec::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        all.extend(batch.rows().iter().map(|row| {
            let id = String::from_utf8(batch.id(row).to_vec()).expect("text");
            (id, row.partition.0, rows.rows_of(row.partition) + u64::from(row.number))
        }));
        rows.add(&batch);
    }
    Ok((all, rows))
}

#[tokio::test]
async fn rows_are_numbered_within_their_partition_whatever_else_is_wanted() {
    let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
    let lines = |n: std::ops::Range<u32>| -> String {
        n.map(|n| format!("{{\"id\":{}}}\n", n % 70)).collect()
    };
    put(&env, &dir.path().join("a1.jsonl"), &lines(0..50));
    put(&env, &dir.path().join("a2.jsonl"), &lines(50..100));
    let of = (&env, dir.path());
    let (all, whole) = read(of, "a*.jsonl", (&[0, 1, 2, 3], 4)).await.expect("rows");
    assert_eq!((all.len(), whole.rows.iter().sum::<u64>()), (100, 100));
    assert_eq!((whole.read.files, whole.read.rows), (2, 100));
    for partition in 0..4 {
        let is_in = |(id, of, _): &&(String, u16, u64)| {
            assert_eq!(vbucket_of(id, 4).0, *of);
            *of == partition
        };
        let expected: Vec<_> = all.iter().filter(is_in).cloned().collect();
        let numbers: Vec<u64> = expected.iter().map(|(_, _, number)| *number).collect();
        assert_eq!(numbers, (1..=whole.rows[usize::from(partition)]).collect::<Vec<_>>());
        let (alone, rows) = read(of, "a*.jsonl", (&[partition], 4)).await.expect("rows");
        assert_eq!(alone, expected, "the same for each holder");
        assert_eq!((&rows.rows, rows.read), (&whole.rows, whole.read), "whatever a holder wants");
    }
}

#[tokio::test]
async fn the_rows_of_many_parts_come_in_their_order() {
    let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
    let pad = "x".repeat(60);
    let lines: String = (0..200_000).map(|n| format!("{{\"id\":{n},\"p\":\"{pad}\"}}\n")).collect();
    put(&env, &dir.path().join("a.jsonl"), &lines);
    let (all, rows) = read((&env, dir.path()), "a.jsonl", (&[0], 1)).await.expect("rows");
    let expected = (0..200_000_u64).map(|n| (n.to_string(), 0, n + 1));
    assert!(all.into_iter().eq(expected));
    assert_eq!(rows.read.rows, 200_000);
}

#[tokio::test]
async fn an_error_names_the_file_and_the_place() {
    let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
    put(&env, &dir.path().join("a.jsonl"), "{\"id\":1}\n");
    put(&env, &dir.path().join("b.jsonl"), "{\"id\":1}\n{\"x\":1}\n");
    let error = read((&env, dir.path()), "*.jsonl", (&[0], 1)).await.expect_err("bad");
    assert!(error.message.starts_with("b.jsonl line 2: "), "{error}");
    let files = Files { pattern: "*.jsonl".into(), id: "id".into() };
    let wanted = (VbucketSet::all(1), 1);
    let error = VersionReader::new(Arc::clone(&env.fs), None, &files, wanted, 100);
    let error = error.err().expect("no directory");
    assert!(error.hint.is_some_and(|hint| hint.contains("--files-dir")));
}
