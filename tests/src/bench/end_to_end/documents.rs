//! The documents: `{"id":"k00000042","n":…,"city":"c01234","pad":"…"}`.
//!
//! Document i has `n = i·7919 mod rows`. 7919 is prime, so that each n from 0 to `rows` − 1 occurs once unless `rows` is a
//! multiple of it. The rows of a range of n are therefore known without a server.

use super::super::Outcome;
use super::super::workload::mix;

/// The step from one document's n to that of the next document.
const STRIDE: u64 = 7919;
/// The number of cities.
const CITIES: u64 = 20_000;

/// A document of the bench, by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The id of the document.
    pub id: String,
    /// The key of the measured indexes.
    pub n: i64,
    /// A name with 20,000 values.
    pub city: String,
    /// 32 random characters, as the rest of a real document.
    pub pad: String,
}

impl Document {
    /// Returns the document as JSON, without a line break.
    pub fn json(&self) -> String {
        let Self { id, n, city, pad } = self;
        format!("{{\"id\":\"{id}\",\"n\":{n},\"city\":\"{city}\",\"pad\":\"{pad}\"}}")
    }

    /// Returns the document's fields with tabs between them: a line of PostgreSQL's COPY without
    /// the line break.
    pub fn tabbed(&self) -> String {
        let Self { id, n, city, pad } = self;
        format!("{id}\t{n}\t{city}\t{pad}")
    }
}

/// All documents of a run.
#[derive(Clone, Copy, Debug)]
pub struct Documents {
    rows: u64,
    /// The number of the document with n = 1.
    inverse: u64,
}

impl Documents {
    /// Returns the documents of a run with this number of rows.
    pub fn new(rows: u64) -> Outcome<Self> {
        let has_one = |i: &u64| i * STRIDE % rows == 1;
        let inverse = (0..rows).find(has_one).ok_or("--rows must not be a multiple of 7919")?;
        Ok(Self { rows, inverse })
    }

    /// Returns the number of documents.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns all documents, in the order of their ids.
    pub fn all(&self) -> impl Iterator<Item = Document> + use<> {
        let documents = *self;
        (0..self.rows).map(move |i| documents.with_key(i, (i * STRIDE % documents.rows) as i64))
    }

    /// Returns document `i` with another n.
    pub fn with_key(&self, i: u64, n: i64) -> Document {
        let word = mix(i);
        let pad = format!("{word:016x}{:016x}", mix(word));
        Document { id: id(i), n, city: format!("c{:05}", mix(!i) % CITIES), pad }
    }

    /// Returns the id and the n of each document with `from` ≤ n < `from` + `width`, in the order
    /// of n.
    pub fn range(&self, from: u64, width: u64) -> Vec<(String, i64)> {
        let row = |n: u64| {
            let i = u128::from(n) * u128::from(self.inverse) % u128::from(self.rows);
            (id(i as u64), n as i64)
        };
        (from..(from + width).min(self.rows)).map(row).collect()
    }
}

fn id(i: u64) -> String {
    format!("k{i:08}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_documents_with_these_keys() {
        let documents = Documents::new(10_000).expect("rows");
        let mut all: Vec<_> = documents.all().map(|document| (document.n, document.id)).collect();
        all.sort();
        let all: Vec<_> = all.into_iter().map(|(n, id)| (id, n)).collect();
        assert_eq!(documents.range(0, 10_000), all);
        assert_eq!(documents.range(9_990, 100), all[9_990..]);
        assert!(Documents::new(2 * STRIDE).is_err(), "two documents would share an n");
    }

    #[test]
    fn a_document_has_one_form_for_each_peer() {
        let document = Document { id: id(42), n: 7, city: "c1".into(), pad: "ab".into() };
        let json = "{\"id\":\"k00000042\",\"n\":7,\"city\":\"c1\",\"pad\":\"ab\"}";
        assert_eq!(document.json(), json);
        assert_eq!(document.tabbed(), "k00000042\t7\tc1\tab");
    }
}
