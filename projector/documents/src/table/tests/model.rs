//! The naive model of a document table: a list of all versions of each document. It shares no code with the table.

use std::collections::BTreeMap;

use proto::model::ids::vbucket_of;

use super::VBUCKETS;

/// A document with its id and seqno.
pub type Row = (String, u64, Vec<u8>);

#[derive(Clone, Debug)]
struct Version {
    seqno: u64,
    document: Option<Vec<u8>>,
}

/// All versions that were not made dead, by id, in the order of their addition.
#[derive(Clone, Debug, Default)]
pub struct Model {
    documents: BTreeMap<String, Vec<Version>>,
}

impl Model {
    pub fn put(&mut self, id: &str, seqno: u64, document: Option<Vec<u8>>) {
        self.documents.entry(id.to_owned()).or_default().push(Version { seqno, document });
    }

    pub fn rewind(&mut self, vbucket: u16, after: u64) {
        for (id, versions) in &mut self.documents {
            if vbucket_of(id, VBUCKETS).0 == vbucket {
                versions.retain(|version| version.seqno <= after);
            }
        }
    }

    /// The document of an id, now or as of a cut.
    pub fn get(&self, id: &str, cut: Option<&[u64]>) -> Option<(u64, Vec<u8>)> {
        let up_to = cut.map_or(u64::MAX, |cut| cut[usize::from(vbucket_of(id, VBUCKETS).0)]);
        let versions = self.documents.get(id)?;
        let newest = versions.iter().rev().find(|version| version.seqno <= up_to)?;
        newest.document.clone().map(|document| (newest.seqno, document))
    }

    /// Returns the seqno of the newest version of a document, which may be a deletion.
    pub fn changed_at(&self, id: &str) -> Option<u64> {
        Some(self.documents.get(id)?.last()?.seqno)
    }

    /// All documents after an id, now or as of a cut.
    pub fn rows(&self, after: Option<&str>, cut: Option<&[u64]>) -> Vec<Row> {
        let ids = self.documents.keys().filter(|id| after.is_none_or(|after| id.as_str() > after));
        let row =
            |id: &String| self.get(id, cut).map(|(seqno, document)| (id.clone(), seqno, document));
        ids.filter_map(row).collect()
    }
}
