//! Description of a fragment for `sextant inspect fragment` and `sextant verify`. Every block is
//! read and checked, and the file's statistics are compared with its rows.

use std::path::Path;
use std::sync::Arc;

use proto::Result;
use proto::env::{Env, FileSystem};
use proto::model::ids::{Epoch, SliceNo};
use serde::Serialize;

use crate::fragment::cache::BlockCache;
use crate::fragment::compression::Compression;
use crate::fragment::filter::{Filter, filter_hash};
use crate::fragment::reader::{Fragment, OpenFragment};
use crate::fragment::stored_block as stored;
use crate::rows::block::Block;
use crate::rows::block_index::Section;
use crate::rows::columns::Columns;
use crate::rows::stats::TableStats;

/// The description of a fragment, with the damage that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FragmentInfo {
    /// Id under which the file was written, perhaps on another node.
    pub id: u64,
    /// Columns of the rows.
    pub columns: String,
    /// Size of the file, in bytes.
    pub file_bytes: u64,
    /// Size of all blocks as they are stored, in bytes.
    pub block_bytes: u64,
    /// Uncompressed size of the readable blocks, in bytes.
    pub raw_bytes: u64,
    /// The size of the filter in bytes.
    pub filter_bytes: u64,
    /// The statistics that the file contains.
    pub stats: TableStats,
    /// The sections of the fragment: the rows of each slice.
    pub sections: Vec<SectionInfo>,
    /// Damage that was found.
    pub findings: Vec<String>,
}

/// The description of a section: a slice's rows in a fragment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SectionInfo {
    /// The slice that the section belongs to.
    pub slice: SliceNo,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of rows.
    pub rows: u64,
    /// Size of the blocks as they are stored, in bytes.
    pub bytes: u64,
    /// First entry of the section, in hexadecimal.
    pub first: String,
    /// Last entry of the section, in hexadecimal.
    pub last: String,
}

/// The description of a block that could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockInfo {
    /// Block number.
    pub block: u32,
    /// The slice that the rows belong to.
    pub slice: SliceNo,
    /// Offset in the file.
    pub offset: u64,
    /// The size of the stored block in bytes.
    pub stored_bytes: u64,
    /// Uncompressed size in bytes.
    pub raw_bytes: u64,
    /// Compression of the block.
    pub compression: Compression,
    /// Number of rows.
    pub rows: u32,
    /// Number of tombstones.
    pub tombstones: u32,
    /// Smallest epoch of a row.
    pub oldest: Epoch,
    /// Largest epoch of a row.
    pub newest: Epoch,
    /// First entry, in hexadecimal.
    pub first: String,
}

/// Passes each readable block of a fragment to `each` and returns a summary. Damage inside blocks
/// is reported as findings, damage outside of them is an error. Blocks the thread.
pub fn describe(env: &Env, path: &Path, each: &mut dyn FnMut(&BlockInfo)) -> Result<FragmentInfo> {
    describe_in(&*env.fs, path, each)
}

/// Describes a fragment like [`describe()`], in the given file system.
pub fn describe_in(
    fs: &dyn FileSystem,
    path: &Path,
    each: &mut dyn FnMut(&BlockInfo),
) -> Result<FragmentInfo> {
    let table = Fragment::open_path(fs, path, 0, &Arc::new(BlockCache::new(0)))?;
    let fragment = &table.fragment;
    let mut check = FragmentCheck::new(&table, fragment.filter());
    for (n, section) in table.index.sections().iter().enumerate() {
        (check.rows, check.bytes, check.last) = (0, 0, None);
        for block in section.first_block..section.end_block {
            check.check_block(fragment, n, block, each);
        }
        check.check_section(section);
    }
    check.check_statistics();
    let sections = table.index.sections().iter().map(|section| describe_section(&table, section));
    Ok(FragmentInfo {
        id: fragment.written_id(),
        columns: Columns(fragment.columns()).to_string(),
        file_bytes: fragment.file_bytes(),
        block_bytes: table.block_bytes,
        raw_bytes: check.raw_bytes,
        filter_bytes: fragment.filter().map_or(0, Filter::size) as u64,
        stats: table.stats.clone(),
        sections: sections.collect(),
        findings: check.findings,
    })
}

fn describe_section(table: &OpenFragment, section: &Section) -> SectionInfo {
    SectionInfo {
        slice: section.slice,
        blocks: section.end_block - section.first_block,
        rows: section.rows,
        bytes: section.bytes,
        first: hex(table.index.first_entry(section.first_block)),
        last: hex(&section.last),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A check of a fragment's rows against its statistics and its sparse index, in one pass.
struct FragmentCheck<'a> {
    table: &'a OpenFragment,
    filter: Option<&'a Filter>,
    /// Statistics of the rows read so far.
    found: TableStats,
    raw_bytes: u64,
    /// True if all blocks so far could be read. Otherwise the statistics are not compared.
    whole: bool,
    /// Number of rows of the current section so far.
    rows: u64,
    bytes: u64,
    /// The entry and epoch of the last row read in the current section.
    last: Option<(Vec<u8>, Epoch)>,
    /// A buffer that is reused for each row.
    entry: Vec<u8>,
    key: Vec<u8>,
    findings: Vec<String>,
}

impl<'a> FragmentCheck<'a> {
    fn new(table: &'a OpenFragment, filter: Option<&'a Filter>) -> Self {
        Self {
            table,
            filter,
            found: TableStats::default(),
            raw_bytes: 0,
            whole: true,
            rows: 0,
            bytes: 0,
            last: None,
            entry: Vec::new(),
            key: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Compares the rows of a section with the sparse index.
    fn check_section(&mut self, section: &Section) {
        let last = self.last.as_ref().map(|(entry, _)| entry);
        let agrees =
            (self.rows, self.bytes, last) == (section.rows, section.bytes, Some(&section.last));
        if self.whole && !agrees {
            let slice = section.slice;
            self.findings.push(format!("the rows of slice {slice} contradict the sparse index"));
        }
    }

    /// Compares all rows with the file's statistics.
    fn check_statistics(&mut self) {
        if self.whole && self.found != self.table.stats {
            let (found, said) = (&self.found, &self.table.stats);
            self.findings
                .push(format!("the statistics say {said:?}, the rows amount to {found:?}"));
        }
    }

    /// Reads and checks a block, and passes its description to `each`.
    fn check_block(
        &mut self,
        fragment: &Fragment,
        section: usize,
        block: u32,
        each: &mut dyn FnMut(&BlockInfo),
    ) {
        let mut read = None;
        let result = fragment.read_blocks(&self.table.index, block..block + 1, |stored, parsed| {
            read = Some((stored::compression(stored), stored.len() as u64, parsed));
        });
        if let Err(error) = result {
            (self.whole, self.last) = (false, None);
            self.findings.push(error.message);
            return;
        }
        let Some((compression, stored_bytes, parsed)) = read else { return };
        let info = BlockInfo {
            block,
            slice: self.table.index.sections()[section].slice,
            offset: self.table.index.place(block).map_or(0, |place| place.0),
            stored_bytes,
            raw_bytes: parsed.bytes().len() as u64,
            compression,
            rows: parsed.rows(),
            tombstones: (0..parsed.rows()).map(|row| u32::from(parsed.is_tombstone(row))).sum(),
            oldest: (0..parsed.rows()).map(|row| parsed.epoch(row)).min().unwrap_or_default(),
            newest: (0..parsed.rows()).map(|row| parsed.epoch(row)).max().unwrap_or_default(),
            first: hex(self.table.index.first_entry(block)),
        };
        self.check_rows(&info, &parsed);
        self.sum(&info);
        each(&info);
    }

    /// Adds a block to the sums.
    fn sum(&mut self, info: &BlockInfo) {
        self.rows += u64::from(info.rows);
        self.bytes += info.stored_bytes;
        self.raw_bytes += info.raw_bytes;
        let found = &mut self.found;
        let is_first = found.rows == 0;
        found.oldest = if is_first { info.oldest } else { found.oldest.min(info.oldest) };
        found.newest = found.newest.max(info.newest);
        found.rows += u64::from(info.rows);
        found.tombstones += u64::from(info.tombstones);
    }

    /// Checks that the rows of a block are in order and come after the previous rows. Reports at
    /// most one finding per block.
    fn check_rows(&mut self, info: &BlockInfo, block: &Block) {
        let place = format!("block {}, at offset {}", info.block, info.offset);
        if block.compare(0, self.table.index.first_entry(info.block)).is_ne() {
            self.findings.push(format!("{place}: the first entry contradicts the sparse index"));
        }
        let mut finding = None;
        for row in 0..block.rows() {
            self.entry.clear();
            block.put_entry(row, &mut self.entry);
            let epoch = block.epoch(row);
            if let Some((entry, newer)) = &self.last {
                let same = *entry == self.entry;
                self.found.versions |= same;
                if *entry > self.entry || same && *newer <= epoch {
                    finding = finding.or(Some((row, "is not behind the row before")));
                }
            }
            if let Some(filter) = self.filter {
                self.key.clear();
                block.put_key(row, &mut self.key);
                if !filter.may_contain(filter_hash(&self.key)) {
                    finding = finding.or(Some((row, "has a key that the filter excludes")));
                }
            }
            let (last, at) = self.last.get_or_insert_default();
            last.clone_from(&self.entry);
            *at = epoch;
        }
        if let Some((row, what)) = finding {
            self.findings.push(format!("{place}: row {row} {what}"));
        }
    }
}
