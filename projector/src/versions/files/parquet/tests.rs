//! Tests that the library's column and row interfaces give equal documents.

use parquet::data_type::*;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use proto::env::Env;
use proto::model::assignment::VbucketSet;

use super::super::batch::Batch;
use super::*;

/// A schema with each physical type that both interfaces read, with and without a logical type.
const SCHEMA: &str = "message m {
    required int32 id;
    optional boolean flag;
    optional int32 small (INTEGER(8,true));
    optional int32 unsigned (INTEGER(32,false));
    optional int32 day (DATE);
    optional int32 price (DECIMAL(9,2));
    optional int64 large;
    optional int64 huge (INTEGER(64,false));
    optional int64 at (TIMESTAMP(MICROS,true));
    optional float real;
    optional double number;
    optional binary text (STRING);
    optional binary bytes;
    optional binary sum (DECIMAL(20,3));
    optional fixed_len_byte_array(4) code;
}";

/// A row without nulls, and for each column except the first whether it is null instead.
#[derive(Clone, Debug)]
struct Cells {
    number: i64,
    text: String,
    nulls: u16,
}

fn cells() -> impl Strategy<Value = Cells> {
    let any = (any::<i64>(), "[a-z\"\\\\\u{1}é]{0,12}", any::<u16>());
    any.prop_map(|(number, text, nulls)| Cells { number, text, nulls })
}

/// Writes the next column; `value` returns the value of a row.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, std::fs::File>,
    (at, rows): (&mut u16, &[Cells]),
    value: impl Fn(&Cells) -> T::T,
) {
    let bit = *at;
    *at += 1;
    let is_there = |cells: &&Cells| bit == 0 || cells.nulls >> (bit - 1) & 1 == 0;
    let values: Vec<T::T> = rows.iter().filter(is_there).map(value).collect();
    let levels: Vec<i16> = rows.iter().map(|cells| i16::from(is_there(&cells))).collect();
    let levels = (bit > 0).then_some(&levels[..]);
    let mut column = group.next_column().expect("ok").expect("a column");
    column.typed::<T>().write_batch(&values, levels, None).expect("written");
    column.close().expect("closed");
}

fn write(path: &Path, rows: &[Cells], group_rows: usize) {
    let schema = parse_message_type(SCHEMA).expect("a schema").into();
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_data_page_row_count_limit(1_000)
        .set_write_batch_size(100)
        .build()
        .into();
    #[allow(
        clippy::disallowed_methods,
        reason = "the library writes to a file of the standard library"
    )]
    let file = std::fs::File::create(path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, properties).expect("a writer");
    let mut ids = 0..;
    for rows in rows.chunks(group_rows) {
        let mut open = writer.next_row_group().expect("a group");
        let (mut at, group) = (0, &mut open);
        let ids: Vec<i32> = ids.by_ref().take(rows.len()).collect();
        let next = std::cell::Cell::new(0);
        put::<Int32Type>(group, (&mut at, rows), |_| ids[next.replace(next.get() + 1)]);
        put::<BoolType>(group, (&mut at, rows), |cells| cells.number > 0);
        put::<Int32Type>(group, (&mut at, rows), |cells| (cells.number as i8).into());
        for _ in 0..3 {
            put::<Int32Type>(group, (&mut at, rows), |cells| cells.number as i32 % 100_000);
        }
        for _ in 0..3 {
            put::<Int64Type>(group, (&mut at, rows), |cells| cells.number);
        }
        put::<FloatType>(group, (&mut at, rows), |cells| f32::from_bits(cells.number as u32));
        put::<DoubleType>(group, (&mut at, rows), |cells| f64::from_bits(cells.number as u64));
        put::<ByteArrayType>(group, (&mut at, rows), |cells| {
            cells.text.clone().into_bytes().into()
        });
        put::<ByteArrayType>(group, (&mut at, rows), |cells| {
            cells.text.clone().into_bytes().into()
        });
        put::<ByteArrayType>(group, (&mut at, rows), |cells| {
            cells.number.to_be_bytes().to_vec().into()
        });
        put::<FixedLenByteArrayType>(group, (&mut at, rows), |cells| {
            let text = format!("{:04}", cells.number.unsigned_abs() % 10_000);
            ByteArray::from(text.into_bytes()).into()
        });
        open.close().expect("closed");
    }
    writer.close().expect("closed");
}

fn rules() -> RowRules {
    let (id, wanted) = ("id".to_owned(), VbucketSet::all(1));
    RowRules { id, document_bytes_max: 1 << 20, partitions: 1, wanted }
}

/// Returns all documents, and the number of batches.
fn documents(parts: &mut dyn Parts) -> Result<(Vec<String>, usize)> {
    let (rules, mut found, mut count) = (rules(), Vec::new(), 0);
    while let Some(part) = parts.next_part(&rules)? {
        let mut next = Some(part);
        while let Some(part) = next {
            let (batch, rest): (Batch, _) = part.read(&rules)?;
            let text = |row| String::from_utf8(batch.document_of(row).to_vec()).expect("text");
            found.extend(batch.rows().iter().map(text));
            (next, count) = (rest, count + 1);
        }
    }
    Ok((found, count))
}

fn by_rows(env: &Env, path: &Path) -> Result<(Vec<String>, usize)> {
    let file = env.fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let file = Chunks { file, len };
    let reader = Reader::new(file.clone()).map_err(|error| library_error(&error))?;
    let fields = Fields::new(reader.metadata().file_metadata().schema(), &rules())?;
    documents(&mut NestedRows::new(file, reader, fields)?)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn columns_give_the_documents_that_rows_give(
        rows in proptest::collection::vec(cells(), 1..60),
        group_rows in 1..40_usize,
    ) {
        let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
        let path = dir.path().join("a.parquet");
        write(&path, &rows, group_rows);
        let expected = by_rows(&env, &path);
        let found = documents(&mut *open(&*env.fs, &path, &rules()).expect("a file"));
        match (expected, found) {
            (Ok((expected, _)), Ok((found, _))) => prop_assert_eq!(found, expected),
            (Err(expected), Err(found)) => prop_assert_eq!(found.code, expected.code),
            (expected, found) => prop_assert!(false, "{:?} and {:?}", expected, found),
        }
    }
}

#[test]
fn a_large_group_is_read_in_parts_that_have_all_its_rows() {
    let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
    let path = dir.path().join("a.parquet");
    let cells = |n: i64| Cells { number: n, text: format!("text {n}"), nulls: n as u16 & 0x7 };
    let rows: Vec<Cells> = (0..60_000).map(cells).collect();
    write(&path, &rows, 45_000);
    let (expected, _) = by_rows(&env, &path).expect("rows");
    let mut parts = open(&*env.fs, &path, &rules()).expect("a file");
    let (found, count) = documents(&mut *parts).expect("rows");
    assert!(count >= 3, "{count} batches");
    assert_eq!(found.len(), 60_000);
    assert!(found == expected, "the same rows in the same order");
}

#[test]
fn rows_that_are_larger_than_the_file_says_come_in_several_batches() {
    let (dir, env) = (tempfile::tempdir().expect("a directory"), Env::real());
    let path = dir.path().join("a.parquet");
    // A dictionary has each text once.
    let text = |n: i64| format!("{}", n % 20).repeat(5_000);
    let cells = |n: i64| Cells { number: n, text: text(n), nulls: 0 };
    let rows: Vec<Cells> = (0..3_000).map(cells).collect();
    write(&path, &rows, 3_000);
    let rules = rules();
    let mut parts = open(&*env.fs, &path, &rules).expect("a file");
    let (mut numbers, mut batches) = (Vec::new(), 0);
    while let Some(part) = parts.next_part(&rules).expect("a part") {
        let mut next = Some(part);
        while let Some(part) = next {
            let (batch, rest) = part.read(&rules).expect("rows");
            assert!(batch.read_bytes() < 24 << 20, "{} bytes", batch.read_bytes());
            numbers.extend(batch.rows().iter().map(|row| batch.id(row).to_vec()));
            (next, batches) = (rest, batches + 1);
        }
    }
    assert!(batches > 2, "{batches} batches");
    let expected = (0..3_000).map(|n: i32| n.to_string().into_bytes());
    assert!(numbers.into_iter().eq(expected), "all rows in their order");
}
