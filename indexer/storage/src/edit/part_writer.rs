//! Writer of a fragment on this node from a part of another node's fragment, while the part
//! arrives. A *part* is the blocks of a fragment that contain one slice's rows.
//!
//! Each block is checked and parsed when it arrives, and stored at its new place without being
//! compressed again. The sparse index, the statistics and the filter are made from the rows. The
//! file is synced later, together with others.

use std::sync::Arc;

use proto::rpc::export::FilePiece;
use proto::{Error, ErrorCode, Result};

use crate::file_id::FileId;
use crate::fragment::filter::filter_hash;
use crate::fragment::part::{PartHead, PartItem, PartReader};
use crate::fragment::writer::{FragmentOptions, FragmentWriter, UnsyncedFragment};
use crate::node::context::EngineContext;
use crate::rows::columns::Columns;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// A file that is deleted when this value is dropped.
struct TemporaryFile {
    context: Arc<EngineContext>,
    file: Option<FileId>,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if let Err(error) = self.context.files.delete(file) {
            // The next start finds the file again.
            tracing::warn!(%error, "deleting a received file failed");
        }
    }
}

/// A fragment that is being written, with the header of the part that it is made from.
struct FragmentDraft {
    head: PartHead,
    out: TableBuilder<FragmentWriter>,
    // Dropped after the writer.
    file: TemporaryFile,
}

/// Writer of a fragment from the received part of another node's fragment. After an error the part
/// must be sent again from its beginning.
pub(super) struct PartWriter {
    context: Arc<EngineContext>,
    /// The file's number on the node that sends it.
    pub source: u64,
    len: u64,
    reader: PartReader,
    begun: Option<FragmentDraft>,
    /// A buffer that is reused for each key.
    key: Vec<u8>,
}

impl PartWriter {
    /// Creates a writer for a part of `len` bytes, from the file with the number `source` on the
    /// sending node.
    pub fn new(context: &Arc<EngineContext>, source: u64, len: u64) -> Self {
        let (context, reader) = (Arc::clone(context), PartReader::new(len));
        Self { context, source, len, reader, begun: None, key: Vec::new() }
    }

    /// Writes the next bytes of the part. Returns true if they were the last. Blocks the thread.
    pub fn write_piece(&mut self, piece: &FilePiece) -> Result<bool> {
        let (file, offset) = (piece.file, piece.offset);
        let end = offset.checked_add(piece.bytes.len() as u64);
        if offset != self.reader.received_bytes() || end.is_none_or(|end| end > self.len) {
            let what = format!("file {file}: the piece at offset {offset} is out of order");
            return Err(Error::unavailable(what));
        }
        self.reader.add_bytes(&piece.bytes);
        let stored = self.write_blocks();
        stored.map_err(|error| error.context(format!("a slice's part of file {file}")))?;
        Ok(self.reader.received_bytes() == self.len)
    }

    /// Writes the complete blocks among the received bytes to the fragment.
    fn write_blocks(&mut self) -> Result<()> {
        while let Some(item) = self.reader.next()? {
            match (item, &mut self.begun) {
                (PartItem::Head(head), _) => self.begun = Some(begin(&self.context, head)?),
                (PartItem::Block(stored, block), Some(FragmentDraft { head, out, .. })) => {
                    out.push_stored(head.slice, &block, |writer| writer.put_stored(stored))?;
                    if Columns(head.columns).contains(Columns::BACK) {
                        for row in 0..block.rows() {
                            self.key.clear();
                            block.put_key(row, &mut self.key);
                            out.sink_mut().add_hash(filter_hash(&self.key));
                        }
                    }
                }
                (PartItem::Block(..), None) => {
                    return Err(Error::internal("a part began with a block"));
                }
            }
        }
        Ok(())
    }

    /// Makes the bytes written so far durable.
    pub fn sync(&mut self) -> Result<()> {
        self.begun.as_mut().map_or(Ok(()), |begun| begun.out.sink_mut().sync())
    }

    /// Ends the file after the last bytes of the part.
    pub fn finish(self) -> Result<UnsyncedFile> {
        let what = || format!("a slice's part of file {}", self.source);
        let begun = self.begun.filter(|begun| begun.out.rows() == begun.head.rows);
        let Some(FragmentDraft { out, file, .. }) = begun.filter(|_| self.reader.is_complete())
        else {
            let text = format!("{} does not have the announced rows", what());
            return Err(Error::new(ErrorCode::Corrupt, text));
        };
        let parts = out.finish_parts()?;
        let (writer, stats, index) =
            parts.ok_or_else(|| Error::internal(format!("{} has no rows", what())))?;
        Ok(UnsyncedFile { fragment: writer.finish_unsynced(stats, index)?, file })
    }
}

/// Begins the fragment that a part with this header is written to.
fn begin(context: &Arc<EngineContext>, head: PartHead) -> Result<FragmentDraft> {
    let columns = Columns(head.columns);
    let filter_rows = columns.contains(Columns::BACK).then_some(head.rows);
    let options = FragmentOptions {
        filter_rows,
        columns: columns.0,
        is_stamped: head.stamp.is_some(),
        ..FragmentOptions::default()
    };
    let (file, out) = context.files.create(&options)?;
    Ok(FragmentDraft {
        head,
        out,
        file: TemporaryFile { context: Arc::clone(context), file: Some(file) },
    })
}

/// A complete file whose content is not durable yet.
pub(super) struct UnsyncedFile {
    fragment: UnsyncedFragment,
    // Dropped after the fragment.
    file: TemporaryFile,
}

impl UnsyncedFile {
    /// Makes the content of the file durable, but not its name, and opens the file. Blocks the
    /// thread.
    pub fn sync(self) -> Result<SyncedFile> {
        let Self { fragment, file } = self;
        Ok(SyncedFile { table: Arc::new(Table::from_fragment(fragment.sync()?)), file })
    }
}

/// A complete file whose content is durable and whose name is not.
pub(super) struct SyncedFile {
    table: Arc<Table>,
    // Dropped after the table.
    file: TemporaryFile,
}

impl SyncedFile {
    /// Returns the file, which the caller owns from now on and which is no longer deleted on drop.
    pub fn into_file(mut self) -> Option<(FileId, Arc<Table>)> {
        Some((self.file.file.take()?, self.table))
    }
}
