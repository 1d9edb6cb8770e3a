//! The history of writes, and the judgement of a scan by it. The rules are in the head of
//! [`super`].

use std::collections::BTreeMap;

use super::documents::{Cell, Content, Range, TestIndex, entries};

/// A logical time, distinct for each event of a client.
pub type Tick = u64;

/// A write of one document; its index in [`Document::writes`] is its version minus one.
#[derive(Clone, Copy, Debug)]
struct Write {
    sent: Tick,
    acked: Option<Tick>,
    delete: bool,
    statement: usize,
}

/// A document and all its writes.
#[derive(Clone, Debug)]
struct Document {
    id: String,
    writes: Vec<Write>,
    /// The newest version that a scan has returned, and the time at which that was known.
    seen: (u64, Tick),
}

/// All writes of all clients.
#[derive(Debug)]
pub struct History {
    seed: u64,
    now: Tick,
    documents: Vec<Document>,
    by_id: BTreeMap<String, usize>,
    /// The documents and versions that each statement has written.
    statements: Vec<Vec<(usize, u64)>>,
}

/// A row of a result.
#[derive(Clone, Debug)]
pub struct Row {
    /// The document.
    pub id: String,
    /// The version of the document.
    pub version: u64,
    /// The keys of the document at that version.
    pub keys: Vec<Option<String>>,
}

/// A finished scan.
#[derive(Debug)]
pub struct Scan<'a> {
    /// The index that was scanned.
    pub index: &'a TestIndex,
    /// The range of the index that was scanned.
    pub range: Range,
    /// The time before which all acknowledged writes must be visible; `None` if any older state is
    /// allowed.
    pub not_before: Option<Tick>,
    /// The time at which all rows were received.
    pub end: Tick,
    /// True if the rows must be in the order of the index, and by id for equal keys.
    pub ordered: bool,
    /// The rows that the scan returned.
    pub rows: &'a [Row],
}

/// The result of judging a scan: the number of faults by kind.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The number of entries compared.
    pub entries: u64,
    /// The number of missing entries.
    pub lost: u64,
    /// The number of entries that were returned more than once.
    pub doubled: u64,
    /// The number of entries that should not be there.
    pub ghost: u64,
    /// The number of statements that were visible in part.
    pub torn: u64,
    /// The number of entries that are not after their predecessor.
    pub misordered: u64,
    /// The descriptions of the first faults.
    pub descriptions: Vec<String>,
    /// The oldest and the newest version of each document that the rows may come from.
    pub shown: BTreeMap<usize, (u64, u64)>,
}

impl Verdict {
    /// True if the scan has no fault.
    pub fn is_clean(&self) -> bool {
        self.descriptions.is_empty()
    }

    fn describe(&mut self, what: impl FnOnce() -> String) {
        if self.descriptions.len() < 5 {
            self.descriptions.push(what());
        }
    }
}

impl History {
    /// Returns an empty history.
    pub fn new(seed: u64) -> Self {
        Self { seed, now: 0, documents: Vec::new(), by_id: BTreeMap::new(), statements: Vec::new() }
    }

    /// Returns the next tick.
    pub fn tick(&mut self) -> Tick {
        self.now += 1;
        self.now
    }

    /// Adds a document without writes; returns its number.
    pub fn add(&mut self, id: String) -> usize {
        let number = self.documents.len();
        self.by_id.insert(id.clone(), number);
        self.documents.push(Document { id, writes: Vec::new(), seen: (0, 0) });
        number
    }

    /// Returns a document's id.
    pub fn id(&self, document: usize) -> &str {
        &self.documents[document].id
    }

    /// Returns the contents of a document at a version.
    pub fn content(&self, document: usize, version: u64) -> Content {
        Content::of(self.seed, &self.documents[document].id, version)
    }

    /// Records that a statement which writes or deletes these documents is sent; returns its number
    /// and the versions.
    pub fn send(&mut self, writes: &[(usize, bool)]) -> (usize, Vec<u64>) {
        let (sent, statement) = (self.tick(), self.statements.len());
        let mut versions = Vec::new();
        for (document, delete) in writes {
            let known = &mut self.documents[*document].writes;
            known.push(Write { sent, acked: None, delete: *delete, statement });
            versions.push(known.len() as u64);
        }
        let documents = writes.iter().map(|(document, _)| *document);
        self.statements.push(documents.zip(versions.iter().copied()).collect());
        (statement, versions)
    }

    /// Records that a statement was acknowledged.
    pub fn acknowledge(&mut self, statement: usize) {
        let now = self.tick();
        for (document, version) in &self.statements[statement] {
            self.documents[*document].writes[*version as usize - 1].acked = Some(now);
        }
    }

    /// Returns the entries of a document at a version in the result of a scan.
    fn expected(&self, scan: &Scan<'_>, document: usize, version: u64) -> Vec<Vec<Cell>> {
        match version.checked_sub(1).map(|n| self.documents[document].writes[n as usize]) {
            None | Some(Write { delete: true, .. }) => Vec::new(),
            Some(_) => entries(scan.index, scan.range, &self.content(document, version)),
        }
    }

    /// Judges a scan and returns its faults.
    pub fn judge(&mut self, scan: &Scan<'_>) -> Verdict {
        let mut verdict = Verdict { entries: scan.rows.len() as u64, ..Verdict::default() };
        let mut rows: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
        for row in scan.rows {
            match self.by_id.get(&row.id) {
                Some(document) => rows.entry(*document).or_default().push(row),
                None => {
                    verdict.ghost += 1;
                    verdict.describe(|| format!("{:?} was never written", row.id));
                }
            }
        }
        for document in 0..self.documents.len() {
            let (oldest, newest) = self.window(document, scan);
            let found = rows.get(&document).map_or(&[][..], |rows| rows);
            let shown = match found {
                [] => self.absent(scan, document, oldest, newest),
                found => self.present(scan, document, oldest, newest, found),
            };
            match shown {
                Some(shown) => drop(verdict.shown.insert(document, shown)),
                None => self.describe_fault(scan, document, (oldest, newest), found, &mut verdict),
            }
        }
        self.judge_statements(scan, &mut verdict);
        if scan.ordered {
            self.judge_order(scan, &mut verdict);
        }
        if verdict.is_clean() {
            let now = self.tick();
            for (document, (oldest, _)) in &verdict.shown {
                let seen = &mut self.documents[*document].seen;
                if *oldest > seen.0 {
                    *seen = (*oldest, now);
                }
            }
        }
        verdict
    }

    /// Returns the oldest and the newest version of a document that a scan may return.
    fn window(&self, document: usize, scan: &Scan<'_>) -> (u64, u64) {
        let Document { writes, seen, .. } = &self.documents[document];
        let newest = writes.partition_point(|write| write.sent < scan.end) as u64;
        let Some(begun) = scan.not_before else { return (0, newest) };
        let acked = |write: &Write| write.acked.is_some_and(|acked| acked < begun);
        let acked = writes.iter().rposition(acked).map_or(0, |n| n as u64 + 1);
        (if seen.1 < begun { acked.max(seen.0) } else { acked }, newest)
    }

    /// Returns the first and the last version in a window that have no entries; `None` if all
    /// versions have entries.
    fn absent(&self, scan: &Scan<'_>, document: usize, from: u64, to: u64) -> Option<(u64, u64)> {
        let is_absent = |version: &u64| self.expected(scan, document, *version).is_empty();
        Some(((from..=to).find(is_absent)?, (from..=to).rev().find(is_absent)?))
    }

    /// Returns the range of versions in a window that match the rows; `None` if none does.
    fn present(
        &self,
        scan: &Scan<'_>,
        document: usize,
        from: u64,
        to: u64,
        rows: &[&Row],
    ) -> Option<(u64, u64)> {
        let version = rows[0].version;
        if !(from.max(1)..=to).contains(&version) || rows.iter().any(|row| row.version != version) {
            return None;
        }
        let mut found: Vec<_> = rows.iter().map(|row| row.keys.clone()).collect();
        let mut expected = texts(&self.expected(scan, document, version));
        found.sort();
        expected.sort();
        (found == expected).then_some((version, version))
    }

    /// Adds the faults in the rows of a document to the verdict.
    fn describe_fault(
        &self,
        scan: &Scan<'_>,
        document: usize,
        (oldest, newest): (u64, u64),
        rows: &[&Row],
        verdict: &mut Verdict,
    ) {
        let mut allowed: Vec<Vec<Option<String>>> = Vec::new();
        for version in oldest..=newest {
            allowed.extend(texts(&self.expected(scan, document, version)));
        }
        let mut known: Vec<(u64, &Vec<Option<String>>)> = Vec::new();
        let before = verdict.doubled + verdict.ghost;
        for row in rows {
            let one = (row.version, &row.keys);
            if known.contains(&one) {
                verdict.doubled += 1;
            } else if !(oldest..=newest).contains(&row.version) || !allowed.contains(&row.keys) {
                verdict.ghost += 1;
            }
            known.push(one);
        }
        if verdict.doubled + verdict.ghost == before {
            verdict.lost += 1;
        }
        let shown: Vec<_> = known.iter().map(|(v, keys)| format!("v{v} {keys:?}")).collect();
        verdict.describe(|| {
            let id = &self.documents[document].id;
            let (index, range) = (scan.index.name, scan.range);
            let last = self.expected(scan, document, newest);
            format!(
                "{index} {range:?}: {id} may show versions {oldest} to {newest} (the last: {last:?}), \
                 and shows {shown:?}"
            )
        });
    }

    /// Checks that each statement is visible completely or not at all.
    fn judge_statements(&self, scan: &Scan<'_>, verdict: &mut Verdict) {
        let mut torn = Vec::new();
        for (document, (oldest, newest)) in &verdict.shown {
            let writes = &self.documents[*document].writes;
            // The newest statement that is certainly shown, and the first one that certainly is not.
            let shows = oldest.checked_sub(1).map(|n| (writes[n as usize].statement, true));
            let not = writes.get(*newest as usize).map(|write| (write.statement, false));
            for (statement, shows) in shows.into_iter().chain(not) {
                for (other, version) in &self.statements[statement] {
                    let Some((oldest, newest)) = verdict.shown.get(other) else { continue };
                    if (shows && newest < version) || (!shows && oldest >= version) {
                        torn.push((*document, *other, *version));
                    }
                }
            }
        }
        verdict.torn += torn.len() as u64;
        for (document, other, version) in torn {
            let (id, other) = (self.id(document), self.id(other));
            let name = scan.index.name;
            verdict.describe(|| {
                format!(
                    "{name}: a part of the statement that made {other} v{version}, seen with {id}"
                )
            });
        }
    }

    fn judge_order(&self, scan: &Scan<'_>, verdict: &mut Verdict) {
        let mut last: Option<(Vec<Cell>, &str)> = None;
        for row in scan.rows {
            let Some(document) = self.by_id.get(&row.id) else { continue };
            let known =
                row.version > 0 && row.version <= self.documents[*document].writes.len() as u64;
            let expected =
                if known { self.expected(scan, *document, row.version) } else { Vec::new() };
            let typed = |keys: &Vec<Cell>| texts(std::slice::from_ref(keys))[0] == row.keys;
            let Some(keys) = expected.into_iter().find(typed) else { continue };
            if let Some((before, id)) = &last {
                let ordered = scan.index.is_ordered(before, &keys)
                    && (*before != keys || *id < row.id.as_str());
                if !ordered {
                    verdict.misordered += 1;
                    let message =
                        format!("{}: {id} {before:?} before {} {keys:?}", scan.index.name, row.id);
                    verdict.describe(|| message);
                }
            }
            last = Some((keys, &row.id));
        }
    }

    /// Compares two scans at one epoch, which must return each document in one version; returns the
    /// descriptions of faults.
    pub fn judge_together(&self, left: &Verdict, right: &Verdict) -> Vec<String> {
        let both = left
            .shown
            .iter()
            .filter_map(|(document, left)| Some((document, left, right.shown.get(document)?)));
        let apart = both.filter(|(_, left, right)| left.1 < right.0 || right.1 < left.0);
        apart
            .map(|(document, left, right)| {
                format!("at one moment {} in versions {left:?} and {right:?}", self.id(*document))
            })
            .collect()
    }
}

fn texts(entries: &[Vec<Cell>]) -> Vec<Vec<Option<String>>> {
    entries.iter().map(|keys| keys.iter().map(Cell::text).collect()).collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
