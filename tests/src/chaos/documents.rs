//! Documents and the index entries that they must have, computed without code of the product.

use serde_json::{Map, Value, json};

/// A cell of a row, in the order of the indexes: NULL, numbers, text by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// The value NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A value of type text.
    Text(String),
}

impl Cell {
    /// Returns the text of the cell in results; `None` for NULL.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Int(int) => Some(int.to_string()),
            Self::Text(text) => Some(text.clone()),
        }
    }
}

/// The contents of a document at a version.
#[derive(Clone, Debug)]
pub struct Content {
    /// The version of the document.
    pub version: u64,
    /// The name of its writer.
    pub writer: String,
    /// A number from 0 to 999.
    pub n: i64,
    /// A missing value, NULL, a number or a text.
    pub a: Option<Cell>,
    /// Up to three distinct tags.
    pub tags: Vec<String>,
}

/// Returns a hash of a document's id and version (FNV-1a; any hash would do).
fn hash(seed: u64, id: &str, version: u64) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(id.bytes()).chain(version.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Content {
    /// Returns the contents of a document at a version.
    pub fn of(seed: u64, id: &str, version: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(hash(seed, id, version));
        let a = match random.u32(..6) {
            0 => None,
            1 => Some(Cell::Null),
            2 | 3 => Some(Cell::Int(random.i64(0..50))),
            _ => Some(Cell::Text(format!("a{}", random.u32(..50)))),
        };
        let mut tags: Vec<_> =
            (0..random.u32(..4)).map(|_| format!("t{}", random.u32(..20))).collect();
        tags.sort();
        tags.dedup();
        let writer = id.split('-').next().unwrap_or_default().to_owned();
        Self { version, writer, n: random.i64(0..1000), a, tags }
    }

    /// Returns the document as JSON.
    pub fn json(&self) -> String {
        let mut fields = Map::new();
        fields.insert("v".into(), json!(self.version));
        fields.insert("w".into(), json!(self.writer));
        fields.insert("n".into(), json!(self.n));
        fields.insert("t".into(), json!(self.tags));
        match &self.a {
            None => {}
            Some(Cell::Null) => drop(fields.insert("a".into(), Value::Null)),
            Some(Cell::Int(int)) => drop(fields.insert("a".into(), json!(int))),
            Some(Cell::Text(text)) => drop(fields.insert("a".into(), json!(text))),
        }
        Value::Object(fields).to_string()
    }
}

/// An index, with its declaration and a function that computes its entries. Its rows contain the
/// id, the version and the keys.
#[derive(Debug)]
pub struct TestIndex {
    /// The name of the index.
    pub name: &'static str,
    /// The declaration after `CREATE INDEX name`.
    pub declared: &'static str,
    /// The columns of its rows after the id and the version.
    pub columns: &'static [&'static str],
    /// True for each of these columns that is DESC.
    pub descending: &'static [bool],
    /// The function that computes the keys of a document's entries, without the version.
    pub keys: fn(&Content) -> Vec<Vec<Cell>>,
}

impl TestIndex {
    /// The CREATE INDEX statement.
    pub fn create(&self) -> String {
        format!("CREATE INDEX IF NOT EXISTS {} {}", self.name, self.declared)
    }

    /// The SELECT of all columns.
    pub fn select(&self) -> String {
        format!("SELECT id, v, {} FROM {}", self.columns.join(", "), self.name)
    }

    /// The ORDER BY clause.
    pub fn order_by(&self) -> String {
        let key = |(column, descending): (&&str, &bool)| {
            format!("{column}{}", if *descending { " DESC" } else { "" })
        };
        let keys: Vec<_> = self.columns.iter().zip(self.descending).map(key).collect();
        format!(" ORDER BY {}", keys.join(", "))
    }

    /// True if two entries, given by their keys, are in the order of the index.
    pub fn is_ordered(&self, left: &[Cell], right: &[Cell]) -> bool {
        for ((left, right), descending) in left.iter().zip(right).zip(self.descending) {
            let order = if *descending { right.cmp(left) } else { left.cmp(right) };
            if order.is_ne() {
                return order.is_lt();
            }
        }
        true
    }
}

fn tag_keys(content: &Content) -> Vec<Vec<Cell>> {
    let key = |tag: &String| vec![Cell::Text(tag.clone()), Cell::Int(content.n)];
    content.tags.iter().map(key).collect()
}

/// The indexes that exist during the whole run.
pub const INDEXES: [TestIndex; 5] = [
    TestIndex {
        name: "by_n",
        declared: "ON c (n::int8) INCLUDE (v) WITH (slices = 6)",
        columns: &["n"],
        descending: &[false],
        keys: |content| vec![vec![Cell::Int(content.n)]],
    },
    TestIndex {
        name: "by_a",
        declared: "ON c (a, n::int8 DESC) INCLUDE (v) WITH (slices = 4, replicas = 1)",
        columns: &["a", "n"],
        descending: &[false, true],
        keys: |content| match &content.a {
            None => Vec::new(),
            Some(a) => vec![vec![a.clone(), Cell::Int(content.n)]],
        },
    },
    TestIndex {
        name: "big",
        declared: "ON c (n::int8 DESC) INCLUDE (v) WHERE n >= 500 WITH (slices = 3, replicas = 1)",
        columns: &["n"],
        descending: &[true],
        keys: |content| match content.n >= 500 {
            true => vec![vec![Cell::Int(content.n)]],
            false => Vec::new(),
        },
    },
    TestIndex {
        name: "by_tag",
        declared: "ON c (UNNEST(t), n::int8) INCLUDE (v) WITH (slices = 4, replicas = 1)",
        columns: &["\"UNNEST(t)\"", "n"],
        descending: &[false, false],
        keys: tag_keys,
    },
    TestIndex {
        name: "by_writer",
        declared: "ON c (w, n::int8) INCLUDE (v) PARTITION BY HASH (w) \
                   WITH (slices = 4, replicas = 1, separate_included_columns = true)",
        columns: &["w", "n"],
        descending: &[false, false],
        keys: |content| vec![vec![Cell::Text(content.writer.clone()), Cell::Int(content.n)]],
    },
];

/// The index that is repeatedly created and dropped.
pub const PASSING: TestIndex = TestIndex {
    name: "passing",
    declared: "ON c (n::int8, a) INCLUDE (v) WITH (slices = 3)",
    columns: &["n", "a"],
    descending: &[false, false],
    keys: |content| match &content.a {
        // A missing later key part is shown as NULL.
        None => vec![vec![Cell::Int(content.n), Cell::Null]],
        Some(a) => vec![vec![Cell::Int(content.n), a.clone()]],
    },
};

/// The index of the pushed bucket.
pub const FED: TestIndex = TestIndex {
    name: "fed",
    declared: "ON f (n::int8) INCLUDE (v) WITH (slices = 4, replicas = 1)",
    columns: &["n"],
    descending: &[false],
    keys: |content| vec![vec![Cell::Int(content.n)]],
};

/// A range of `n` with both ends included; `None` for all.
pub type Range = Option<(i64, i64)>;

/// Returns the entries of a document in a scan of a range.
pub fn entries(index: &TestIndex, range: Range, content: &Content) -> Vec<Vec<Cell>> {
    match range {
        Some((from, to)) if !(from..=to).contains(&content.n) => Vec::new(),
        _ => (index.keys)(content),
    }
}
