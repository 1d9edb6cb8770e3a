use std::path::Path;

use proptest::prelude::*;
use proto::Error;
use proto::env::{Env, OpenMode};
use proto::model::assignment::VbucketSet;

use super::pattern::find_files;
use super::*;

/// A directory with files.
pub(super) struct Dir(tempfile::TempDir, Env);

impl Dir {
    pub(super) fn new(files: &[(&str, &[u8])]) -> Self {
        let dir = Self(tempfile::tempdir().expect("a directory"), Env::real());
        files.iter().for_each(|(name, bytes)| dir.put(name, bytes));
        dir
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.0.path().join(name);
        let fs = &self.1.fs;
        fs.create_dir_all(path.parent().expect("a parent")).expect("made");
        let file = fs.open(&path, OpenMode::Create).expect("created");
        file.set_len(0).expect("emptied");
        file.write_all_at(bytes, 0).expect("written");
    }

    fn find(&self, pattern: &str) -> Result<Vec<FileToRead>> {
        find_files(&*self.1.fs, self.0.path(), pattern)
    }

    /// Returns the rows of all files of a pattern, up to an error, and that error.
    pub(super) fn rows(
        &self,
        pattern: &str,
        bytes_max: usize,
    ) -> (Vec<(String, String)>, Option<Error>) {
        let rules = rules("id", bytes_max);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let mut found = Vec::new();
        let read = |found: &mut Vec<_>| -> Result<()> {
            for file in self.find(pattern)? {
                let mut parts = open_parts(&*self.1.fs, &file, &rules)?;
                while let Some(part) = parts.next_part(&rules)? {
                    let mut next = Some(part);
                    while let Some(part) = next {
                        let (batch, rest) = part.read(&rules)?;
                        let row = |row| (text(batch.id(row)), text(batch.document_of(row)));
                        found.extend(batch.rows().iter().map(row));
                        next = rest;
                    }
                }
            }
            Ok(())
        };
        let error = read(&mut found).err();
        (found, error)
    }

    pub(super) fn documents(&self, pattern: &str) -> Vec<String> {
        let (rows, error) = self.rows(pattern, 1 << 20);
        assert_eq!(error, None, "{pattern}");
        rows.into_iter().map(|(_, document)| document).collect()
    }

    /// Replaces all occurrences of `from` in a file.
    #[cfg(feature = "parquet")]
    pub(super) fn change(&self, name: &str, from: &[u8], to: &[u8]) {
        let file = self.1.fs.open(&self.0.path().join(name), OpenMode::Read).expect("opened");
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_exact_at(&mut bytes, 0).expect("read");
        let places: Vec<usize> =
            (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
        assert!(!places.is_empty(), "{name} has the bytes");
        places.iter().for_each(|at| bytes[*at..at + to.len()].copy_from_slice(to));
        self.put(name, &bytes);
    }

    pub(super) fn refused(&self, pattern: &str) -> String {
        let (_, error) = self.rows(pattern, 1 << 20);
        error.unwrap_or_else(|| panic!("{pattern} is read")).message
    }
}

/// The rules for a single partition, which is requested.
fn rules(id: &str, document_bytes_max: usize) -> RowRules {
    RowRules { id: id.into(), document_bytes_max, partitions: 1, wanted: VbucketSet::all(1) }
}

fn compressed(text: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(text, 3).expect("compressed")
}

#[test]
fn only_regular_files_below_the_directory_are_read() {
    let dir = Dir::new(&[("p/a.csv", b"id\n1\n"), ("q/b.csv", b"id\n2\n"), ("r/c.csv/x", b"")]);
    let outside = Dir::new(&[("secret.csv", b"id\nsecret\n")]);
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, dir.0.path().join(name)).expect("a link");
    };
    link(&dir.0.path().join("q/b.csv"), "p/b.csv");
    assert_eq!(dir.documents("p/*.csv").len(), 2, "a link within the directory");
    link(&outside.0.path().join("secret.csv"), "q/c.csv");
    link(outside.0.path(), "s");
    link(Path::new("nowhere"), "t.csv");
    let _socket = std::os::unix::net::UnixListener::bind(dir.0.path().join("u.csv"));
    for (pattern, why) in [
        ("q/*.csv", "q/c.csv leads out of the directory of files"),
        ("s/secret.csv", "s/secret.csv leads out of the directory of files"),
        ("r/c.csv", "r/c.csv is no regular file"),
        ("u.csv", "u.csv is no regular file"),
        ("t.csv", "t.csv: "),
    ] {
        let refused = dir.refused(pattern);
        assert!(refused.starts_with(why), "{pattern}: {refused}");
    }
}

#[test]
fn a_pattern_means_files_of_one_directory_in_the_order_of_their_names() {
    let dir = Dir::new(&[
        ("p/b.csv", b""),
        ("p/a.csv", b""),
        ("p/a.csv.zst", b""),
        ("p/.a.csv", b""),
        ("p/q/c.csv", b""),
        ("a.ndjson", b""),
        ("b.txt", b""),
    ]);
    let names = |pattern| -> Vec<String> {
        dir.find(pattern).expect(pattern).into_iter().map(|file| file.name).collect()
    };
    assert_eq!(names("p/*.csv"), ["p/a.csv", "p/b.csv"]);
    assert_eq!(names("p/a*"), ["p/a.csv", "p/a.csv.zst"]);
    assert_eq!(names("p/q/c.csv"), ["p/q/c.csv"]);
    assert_eq!(names("a.nd*"), ["a.ndjson"]);
    for (pattern, why) in [
        ("/etc/*.csv", "absolute"),
        ("p/../a.csv", "`..`"),
        ("./a.csv", "`.`"),
        ("p//a.csv", "empty part"),
        ("", "empty part"),
        ("*/a.csv", "last part"),
        ("p/*a*.csv", "more than one `*`"),
        ("p\\a.csv", "backslash"),
        ("none/*.csv", "no file of \"none/*.csv\""),
        ("p/z*.csv", "no file of \"p/z*.csv\""),
        ("b.txt", ".ndjson"),
        ("p/*", "p/q: the ending"),
    ] {
        let error = dir.find(pattern).expect_err(pattern);
        assert!(error.message.contains(why), "{pattern}: {error}");
        assert!(error.hint.is_some() || why == ".ndjson" || why.starts_with("p/q"), "{pattern}");
    }
    let error = dir.find("p/z*.csv").expect_err("no match");
    assert!(error.message.contains(&dir.0.path().display().to_string()), "{error}");
}

#[test]
fn each_line_is_a_document_as_it_is() {
    let text = "\u{feff}{\"id\": 7, \"a\" : [1]}\r\n\n  {\"b\":\"ü\",\"id\":\"x\"}\n{\"id\":-3}";
    let dir =
        Dir::new(&[("a.jsonl", text.as_bytes()), ("b.jsonl.zst", &compressed(text.as_bytes()))]);
    for pattern in ["a.jsonl", "b.jsonl.zst"] {
        let (rows, error) = dir.rows(pattern, 1 << 20);
        assert_eq!(error, None);
        let rows: Vec<_> = rows.iter().map(|(id, document)| (&**id, &**document)).collect();
        let expected = [
            ("7", "{\"id\": 7, \"a\" : [1]}"),
            ("x", "{\"b\":\"ü\",\"id\":\"x\"}"),
            ("-3", "{\"id\":-3}"),
        ];
        assert_eq!(rows, expected);
    }
}

#[test]
fn a_bad_line_is_named_by_file_and_number() {
    let line = |n: usize| format!("{{\"id\":{n},\"pad\":\"{}\"}}\n", "x".repeat(n % 90));
    let long: String = (0..30_000).map(line).collect();
    for (bad, why) in [
        ("{\"id\":1", "line 30001"),
        ("{\"a\":1}", "no field id"),
        ("{\"id\":1.5}", "neither string nor integer"),
        ("{\"id\":null}", "neither string nor integer"),
        ("{\"id\":\"\"}", "id is empty"),
        ("[1]", "not a JSON object"),
        ("{\"id\":\"\u{1}\"}", "line 30001"),
    ] {
        let dir = Dir::new(&[("p/a.jsonl", format!("{long}{bad}\n{long}").as_bytes())]);
        let message = dir.refused("p/*.jsonl");
        assert!(message.starts_with("line 30001: ") && message.contains(why), "{bad}: {message}");
    }
    let long = format!("{{\"id\":1}}\n{}", " ".repeat(3_000_000));
    let dir = Dir::new(&[("a.jsonl", long.as_bytes())]);
    assert!(dir.rows("a.jsonl", 1 << 20).1.expect("too long").message.starts_with("line 2: "));
    let dir = Dir::new(&[("a.jsonl", b"{\"id\":\"12345678901234567890\"}\n")]);
    let message = dir.rows("a.jsonl", 16).1.expect("over the limit").message;
    assert!(message.contains("the limit is 16 bytes"), "{message}");
}

#[test]
fn a_compressed_file_that_is_cut_off_is_an_error() {
    let text: String = (0..9_000).map(|n| format!("{{\"id\":{n}}}\n")).collect();
    let whole = compressed(text.as_bytes());
    let dir = Dir::new(&[("a.jsonl.zst", &whole[..whole.len() - 9]), ("b.jsonl.zst", b"no zstd")]);
    assert!(dir.refused("a.jsonl.zst").starts_with("line "));
    assert!(dir.refused("b.jsonl.zst").starts_with("line 1: "));
    // Some tools write several frames one after another.
    let two = [whole.clone(), whole].concat();
    dir.put("c.jsonl.zst", &two);
    assert_eq!(dir.documents("c.jsonl.zst").len(), 18_000);
}

#[test]
fn a_record_is_an_object_with_its_columns() {
    let text = "\u{feff}id,n,\"a \"\"b\"\"\",flag\r\n1,2,x,true\n\n\"007\",,\"\",\"2\"\r\n\"a,\nb\",-1.5e3,\"\"\"q\"\"\",01\nlast,1e999,true ,";
    let dir = Dir::new(&[("a.csv", text.as_bytes()), ("b.csv.zst", &compressed(text.as_bytes()))]);
    let expected = [
        ("1", r#"{"id":1,"n":2,"a \"b\"":"x","flag":true}"#),
        ("007", r#"{"id":"007","a \"b\"":"","flag":"2"}"#),
        ("a,\nb", r#"{"id":"a,\nb","n":-1.5e3,"a \"b\"":"\"q\"","flag":"01"}"#),
        ("last", r#"{"id":"last","n":"1e999","a \"b\"":"true "}"#),
    ];
    for pattern in ["a.csv", "b.csv.zst"] {
        let (rows, error) = dir.rows(pattern, 1 << 20);
        assert_eq!(error, None);
        let rows: Vec<_> = rows.iter().map(|(id, document)| (&**id, &**document)).collect();
        assert_eq!(rows, expected, "{pattern}");
    }
}

#[test]
fn a_bad_record_is_named_by_its_line() {
    for (text, why) in [
        ("", "line 1: the file has no header"),
        ("a,b\n1,2\n", "line 1: the header has no column \"id\""),
        ("id,,c\n", "line 1: column 2 of the header has no name"),
        ("id,c,c\n", "line 1: the header has column \"c\" twice"),
        ("id,c\n1,2\n\n3\n", "line 4: the record has 1 cells, and the header has 2"),
        ("id,c\n1,2,3\n", "line 2: the record has 3 cells, and the header has 2"),
        ("id,c\n1,\"a\nb\"\n2,a\"b\n", "line 4: cell 2 has a quote in its midst"),
        ("id,c\n1,\"a\"b\n", "line 2: cell 2 goes on behind its closing quote"),
        ("id,c\n1,2\n2,\"a\nb\n", "line 3: the quotes of cell 2 have no end"),
        ("id,c\n,2\n", "line 2: a document's id is empty"),
        ("id,c\r1,2\r", "line 1: a carriage return without a line feed follows on cell 2"),
        ("id,c\n1,a\rb\n", "line 2: a carriage return without a line feed follows on cell 2"),
        ("id,c\n1,\"a\"\r2,b\r", "line 2: cell 2 goes on behind its closing quote"),
    ] {
        let dir = Dir::new(&[("a.csv", text.as_bytes())]);
        let message = dir.refused("a.csv");
        assert!(message.starts_with(why), "{text:?}: {message}");
    }
    let dir = Dir::new(&[("a.csv", b"id\n\xff\n")]);
    assert_eq!(dir.refused("a.csv"), "line 2: cell 1 is not UTF-8");
    let (_, error) = Dir::new(&[("a.csv", b"id\n1234567890\n")]).rows("a.csv", 10);
    assert!(error.expect("over the limit").message.contains("limit is 10 bytes"));
}

/// Returns a cell as text in CSV.
fn spelled(cell: &str, is_quoted: bool) -> String {
    let must = cell.is_empty() || cell.contains([',', '"', '\n', '\r']);
    match is_quoted || must {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Cells that are written as CSV are read back, with any quoting and any line ends.
    #[test]
    fn cells_are_read_as_written(
        cells in proptest::collection::vec(("[a-z,\"\n\r üé]{0,9}", any::<bool>()), 1..40),
        ends_with_cr in any::<bool>(),
    ) {
        let end = if ends_with_cr { "\r\n" } else { "\n" };
        let mut text = format!("id,c{end}");
        for (n, (cell, is_quoted)) in cells.iter().enumerate() {
            text.push_str(&format!("k{n},{}{end}", spelled(cell, *is_quoted)));
        }
        let dir = Dir::new(&[("a.csv", text.as_bytes())]);
        let documents = dir.documents("a.csv");
        let expected: Vec<String> = cells.iter().enumerate().map(|(n, (cell, _))| {
            let mut value = Vec::new();
            match &**cell {
                plain @ ("true" | "false") => value.extend_from_slice(plain.as_bytes()),
                text => proto::value::write_json_text(text, &mut value),
            }
            format!("{{\"id\":\"k{n}\",\"c\":{}}}", String::from_utf8(value).unwrap())
        }).collect();
        prop_assert_eq!(documents, expected);
    }

    /// No bytes make a reader panic, and every document that a reader yields is JSON with its id.
    #[test]
    fn any_bytes_are_rows_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let dir = Dir::new(&[]);
        for name in ["a.jsonl", "a.csv", "a.csv.zst", "a.parquet"] {
            let headed = [if name == "a.csv" { &b"id,c\n"[..] } else { b"" }, &bytes].concat();
            dir.put(name, &headed);
            let (rows, _) = dir.rows(name, 1 << 20);
            for (_, document) in rows {
                proto::value::check_json(document.as_bytes()).expect("JSON");
            }
        }
    }
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;

    use super::*;

    const SCHEMA: &str =
        "message m { required binary id (STRING); required int64 n; optional double x; }";

    /// Returns a Parquet file of some rows in two row groups.
    fn parquet_bytes(ids: &[&str]) -> Vec<u8> {
        let schema = parse_message_type(SCHEMA).expect("a schema").into();
        let properties = WriterProperties::builder()
            .set_compression(::parquet::basic::Compression::SNAPPY)
            .build()
            .into();
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, properties).expect("a writer");
        for ids in ids.chunks(2) {
            let mut group = writer.next_row_group().expect("a group");
            let texts: Vec<ByteArray> = ids.iter().map(|id| ByteArray::from(*id)).collect();
            let mut column = group.next_column().expect("ok").expect("a column");
            column.typed::<ByteArrayType>().write_batch(&texts, None, None).expect("written");
            column.close().expect("closed");
            let numbers: Vec<i64> = ids.iter().map(|id| id.len() as i64).collect();
            let mut column = group.next_column().expect("ok").expect("a column");
            column.typed::<Int64Type>().write_batch(&numbers, None, None).expect("written");
            column.close().expect("closed");
            let levels: Vec<i16> = (0..ids.len()).map(|at| i16::from(at == 0)).collect();
            let mut column = group.next_column().expect("ok").expect("a column");
            column.typed::<DoubleType>().write_batch(&[0.5], Some(&levels), None).expect("written");
            column.close().expect("closed");
            group.close().expect("closed");
        }
        writer.into_inner().expect("a file")
    }

    #[test]
    fn a_row_is_an_object_with_its_columns() {
        let dir = Dir::new(&[("a.parquet", &parquet_bytes(&["a", "bb", "ccc"]))]);
        let expected = [
            r#"{"id":"a","n":1,"x":0.5}"#,
            r#"{"id":"bb","n":2,"x":null}"#,
            r#"{"id":"ccc","n":3,"x":0.5}"#,
        ];
        assert_eq!(dir.documents("a.parquet"), expected);
    }

    #[test]
    fn a_bad_row_is_named_by_its_number() {
        let dir = Dir::new(&[("a.parquet", &parquet_bytes(&["a", "b", "", "d"]))]);
        assert!(dir.refused("a.parquet").starts_with("row 3: a document's id is empty"));
        let fs = &dir.1.fs;
        let file = &dir.find("a.parquet").expect("found")[0];
        let error = open_parts(&**fs, file, &rules("k", 100)).err().expect("no such column");
        assert!(error.message.contains("no column \"k\""), "{error}");
        assert_eq!(error.hint.as_deref(), Some("the columns are id, n, x"));
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let whole = parquet_bytes(&["a", "bb", "ccc", "dddd"]);
        let dir = Dir::new(&[]);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            dir.put("a.parquet", &damaged);
            drop(dir.rows("a.parquet", 1 << 20));
        }
        for len in 0..whole.len() {
            dir.put("a.parquet", &whole[..len]);
            assert!(dir.rows("a.parquet", 1 << 20).1.is_some(), "{len} bytes");
        }
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    let dir = Dir::new(&[("a.parquet", b"PAR1")]);
    assert!(dir.refused("a.parquet").contains("built without parquet"));
}

#[test]
fn the_directory_of_a_pattern_may_be_missing() {
    let dir = Dir::new(&[]);
    let missing = dir.0.path().join("none");
    let error = find_files(&*dir.1.fs, Path::new(&missing), "a.csv").expect_err("no directory");
    assert!(error.message.contains("no file of \"a.csv\""), "{error}");
}
