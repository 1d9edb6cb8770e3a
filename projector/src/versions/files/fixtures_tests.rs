//! Tests with Parquet files of another writer (`fixtures/make.py`): how each type is converted, and
//! which types are refused with an error that names them.

use parquet::schema::parser::parse_message_type;

use super::tests::Dir;

/// Returns a directory with one of the files.
fn dir(name: &str) -> Dir {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/versions/files/fixtures")
        .join(name);
    let env = proto::env::Env::real();
    let file = env.fs.open(&path, proto::env::OpenMode::Read).expect(name);
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    file.read_exact_at(&mut bytes, 0).expect("bytes");
    Dir::new(&[("a.parquet", &bytes)])
}

/// Returns the values of each row except the id, one per line.
fn rows(name: &str) -> Vec<Vec<String>> {
    let documents = dir(name).documents("a.parquet");
    let fields = |document: String| {
        let (_, fields) = document.split_once(',').expect("an id and more");
        fields
            .trim_end_matches('}')
            .split(",\"")
            .map(|field| field.trim_start_matches('"').to_owned())
            .collect()
    };
    documents.into_iter().map(fields).collect()
}

/// Each column of the flat files, and its values in the first two rows. The third row has nulls.
const TYPES: [(&str, &str, &str); 38] = [
    ("nothing", "null", "null"),
    ("bool", "true", "false"),
    ("int8", "-128", "127"),
    ("int16", "-32768", "32767"),
    ("int32", "-2147483648", "2147483647"),
    ("int64", "-9223372036854775808", "9223372036854775807"),
    ("uint8", "0", "255"),
    ("uint16", "0", "65535"),
    ("uint32", "0", "4294967295"),
    ("uint64", "0", "18446744073709551615"),
    ("half", "1.5", "-65504.0"),
    ("float", "0.1", "-3.4028235e38"),
    ("double", "0.1", "1e300"),
    ("decimal9", "-1234567.89", "0.01"),
    ("decimal18", "99999999999999.9999", "-0.0001"),
    ("decimal38", "-9999999999999999999999999999.9999999999", "0.0000000000"),
    ("decimal76", "-99999999999999999999999999999999999.999", "12.345"),
    ("text", r#""a\"b""#, r#""""#),
    ("large_text", r#""ü""#, r#""\n""#),
    ("category", r#""x""#, r#""y""#),
    ("bytes", r#""abc""#, r#""""#),
    ("fixed", r#""abcd""#, r#""    ""#),
    ("date32", r#""2026-02-28""#, r#""0001-01-01""#),
    ("date64", r#""2000-02-29""#, r#""1969-12-31""#),
    ("time_s", r#""01:02:03.000""#, r#""23:59:59.000""#),
    ("time_ms", r#""01:02:03.004""#, r#""00:00:00.000""#),
    ("time_us", r#""01:02:03.000004""#, r#""00:00:00.000000""#),
    ("time_ns", r#""01:02:03.000000004""#, r#""23:59:59.999999999""#),
    ("at_s", r#""2026-02-28T23:59:59.000""#, r#""1969-12-31T23:59:59.000""#),
    ("at_ms", r#""2026-02-28T23:59:59.500""#, r#""0001-01-01T00:00:00.000""#),
    ("at_us", r#""2026-02-28T23:59:59.500000""#, r#""9999-12-31T23:59:59.999999""#),
    ("at_ns", r#""2026-02-28T23:59:59.500000001""#, r#""1969-12-31T23:59:59.999999999""#),
    ("utc_ms", r#""2026-02-28T23:59:59.500Z""#, r#""0001-01-01T00:00:00.000Z""#),
    ("utc_us", r#""2026-02-28T23:59:59.500000Z""#, r#""1970-01-01T00:00:00.000000Z""#),
    ("utc_ns", r#""2026-02-28T23:59:59.500000001Z""#, r#""1969-12-31T23:59:59.999999999Z""#),
    // A parquet file declares a duration only as an integer.
    ("duration", "1000", "-86400000"),
    (
        "uuid",
        r#""00000000-0000-0000-0000-000000000001""#,
        r#""41414141-4141-4141-4141-414141414141""#,
    ),
    ("json", r#""{\"a\": 1}""#, r#""[]""#),
];

#[test]
fn each_type_keeps_its_values() {
    for name in ["types.parquet", "types_v2.parquet"] {
        let documents = dir(name).documents("a.parquet");
        let of = |id: &str, value: fn(&(&str, &str, &str)) -> String| {
            let fields: Vec<String> =
                TYPES.iter().map(|row| format!("\"{}\":{}", row.0, value(row))).collect();
            format!("{{\"id\":\"{id}\",{}}}", fields.join(","))
        };
        let expected = [
            of("a", |row| row.1.to_owned()),
            of("b", |row| row.2.to_owned()),
            of("c", |_| "null".to_owned()),
        ];
        assert_eq!(documents, expected, "{name}");
    }
}

#[test]
fn nested_values_have_the_types_of_their_columns() {
    let documents = dir("nested.parquet").documents("a.parquet");
    let at = r#""2026-02-28T23:59:59.500000001"#;
    let expected = [
        format!(
            "{{\"id\":\"a\",\"point\":{{\"x\":1,\"at\":{at}\"}},\"points\":[{{\"x\":1,\"at\":{at}\"}}],\
             \"times\":[\"00:00:00.000000001\",null],\"lists\":[[0.5],[]],\"fixed_list\":[1,2],\
             \"by_text\":{{\"k\":\"2026-02-28T23:59:59.500000\"}},\"by_number\":{{\"-7\":1.5}},\
             \"uuids\":[\"ab\"],\"flat_utc\":{at}Z\"}}"
        ),
        "{\"id\":\"b\",\"point\":{\"x\":null,\"at\":null},\"points\":[],\"times\":null,\"lists\":[null],\
         \"fixed_list\":[3,4],\"by_text\":{},\"by_number\":null,\"uuids\":[],\"flat_utc\":null}"
            .to_owned(),
        "{\"id\":\"c\",\"point\":null,\"points\":null,\"times\":null,\"lists\":null,\
         \"fixed_list\":null,\"by_text\":null,\"by_number\":null,\"uuids\":null,\"flat_utc\":null}"
            .to_owned(),
    ];
    assert_eq!(documents, expected);
}

#[test]
fn files_of_single_types_and_codecs_are_read() {
    for (name, first) in [
        ("ts_us", r#"at":"2026-02-28T23:59:59.500000" at_utc":"2026-02-28T23:59:59.500000Z""#),
        (
            "ts_ns",
            r#"at":"2026-02-28T23:59:59.500000000" at_utc":"2026-02-28T23:59:59.500000000Z""#,
        ),
        ("time", r#"t_us":"01:02:03.000000" t_ns":"01:02:03.000000000""#),
        ("int96", r#"at":"2026-02-28T23:59:59.123456000""#),
        ("nested_ns", r#"s":{"at":"2026-02-28T23:59:59.500000000""#),
        ("uuid", r#"u":"7ed4bffc-f189-40b0-9090-c58e1cba14b8""#),
        ("codec_gzip", r#"a":"#),
        ("codec_lz4", r#"a":"#),
        ("decimal_integers", "decimal9\":-1234567.89 decimal18\":99999999999999.9999"),
    ] {
        let found = rows(&format!("{name}.parquet"));
        assert!(
            found[0].join(" ").starts_with(first) || name.starts_with("codec"),
            "{name}: {found:?}"
        );
    }
    let uuids = rows("uuid.parquet");
    assert_eq!(uuids[1], [r#"u":"41414141-4141-4141-4141-414141414141""#]);
    let (rows, error) = dir("uuid_id.parquet").rows("a.parquet", 1 << 20);
    assert_eq!((rows[0].0.as_str(), error), ("7ed4bffc-f189-40b0-9090-c58e1cba14b8", None));
    assert_eq!(dir("empty.parquet").documents("a.parquet"), [] as [String; 0]);
}

#[test]
fn what_cannot_be_read_exactly_is_refused_by_name() {
    for (name, why) in [
        ("codec_brotli", "column \"id\" is compressed by BROTLI"),
        ("decimal_large", "row 1: column \"n\": the decimal has more than 38 digits"),
        ("twice", "the file has column \"text\" twice"),
        ("twice_nested", "the file has column \"t\" twice"),
        ("keys_twice", "row 1: column \"m\": a map has key \"k\" twice"),
        ("int96_nested", "column \"at\" has type INT96"),
    ] {
        let refused = dir(&format!("{name}.parquet")).refused("a.parquet");
        assert!(refused.starts_with(why), "{name}: {refused}");
    }
}

#[test]
fn a_damaged_page_is_refused_with_its_row_group_and_column() {
    for (name, column) in [("crc", "text"), ("crc_nested", "s.text")] {
        let dir = dir(&format!("{name}.parquet"));
        assert_eq!(dir.documents("a.parquet").len(), 3, "{name} is whole");
        dir.change("a.parquet", b"damage", b"Damage");
        let refused = dir.refused("a.parquet");
        let place = format!("row 1: row group 0: column \"{column}\": ");
        assert!(refused.starts_with(&place) && refused.contains("CRC"), "{name}: {refused}");
    }
}

#[test]
fn types_that_json_cannot_keep_are_refused_by_name() {
    use super::parquet::kind::Kind;
    for (column, told) in [
        ("optional binary x (BSON)", "BYTE_ARRAY Bson"),
        ("optional fixed_len_byte_array(12) x (INTERVAL)", "FIXED_LEN_BYTE_ARRAY INTERVAL"),
    ] {
        let schema = parse_message_type(&format!("message m {{ {column}; }}")).expect(column);
        let error = Kind::of(&schema.get_fields()[0]).expect_err(column);
        let expected = format!("column \"x\" has type {told}, which JSON cannot keep exactly");
        assert_eq!(error.message, expected);
    }
}
