//! Reads files with a JSON object in each line. Such a file is cut into parts of complete lines,
//! which are then read in parallel.

use proto::rpc::api::{check_document_with_id, too_long_error};
use proto::{Error, Result};

use super::batch::{Batch, RowRules, document_too_long};
use super::input::{PIECE_BYTES, TextInput, read_piece};
use super::parts::{PART_BYTES, Part, Parts};

/// The byte order mark in UTF-8, with which some editors begin a file.
pub const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A reader of a file with a JSON object in each line.
pub struct JsonLines {
    input: TextInput,
    /// The incomplete line after the last part that was returned.
    rest: Vec<u8>,
    is_end: bool,
    /// The number of lines in the parts returned so far.
    lines: u64,
}

impl JsonLines {
    /// Creates a reader of the lines of a text.
    pub fn new(input: TextInput) -> Self {
        Self { input, rest: Vec::new(), is_end: false, lines: 0 }
    }

    /// Returns the next part of the text: complete lines, and at the end of the file also a last
    /// line without a line break. `None` after the end.
    fn next_lines(&mut self, line_bytes_max: usize) -> Result<Option<Vec<u8>>> {
        let mut text = Vec::with_capacity(PART_BYTES + PIECE_BYTES);
        text.append(&mut self.rest);
        let mut end = 0;
        while !self.is_end && (text.len() < PART_BYTES || end == 0) {
            let searched = text.len();
            self.is_end = !read_piece(&mut self.input, &mut text)?;
            let found = text[searched..].iter().rposition(|byte| *byte == b'\n');
            end = found.map_or(end, |found| searched + found + 1);
            if text.len() - end > line_bytes_max {
                // The lines before may have errors of their own, which come first.
                break;
            }
        }
        if !self.is_end {
            match end {
                0 => return Err(too_long_error(text.len())),
                end => self.rest = text.split_off(end),
            }
        }
        Ok((!text.is_empty()).then_some(text))
    }
}

impl Parts for JsonLines {
    fn next_part(&mut self, rules: &RowRules) -> Result<Option<Part>> {
        // White space around a document does not count, up to as much as the document.
        let line_bytes_max = 2 * rules.document_bytes_max;
        let first = self.lines + 1;
        let cut = self.next_lines(line_bytes_max).map_err(|error| at_line(error, first))?;
        let Some(text) = cut else { return Ok(None) };
        self.lines += text.iter().filter(|byte| **byte == b'\n').count() as u64;
        let read = move |rules: &RowRules| Ok((read_lines(&text, first, rules)?, None));
        Ok(Some(Part::Unread(Box::new(read))))
    }
}

fn at_line(error: Error, line: u64) -> Error {
    error.context(format!("line {line}"))
}

/// Reads the documents of complete lines. `first` is the number of the first line, for errors.
fn read_lines(text: &[u8], first: u64, rules: &RowRules) -> Result<Batch> {
    // Each id is there twice.
    let mut batch = Batch::new(rules, text.len() + text.len() / 4);
    for (line, number) in text.split(|byte| *byte == b'\n').zip(first..) {
        let line = match number {
            1 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
            _ => line,
        };
        let document = line.trim_ascii();
        if !document.is_empty() {
            read_document(document, rules, &mut batch).map_err(|error| at_line(error, number))?;
        }
    }
    Ok(batch)
}

fn read_document(document: &[u8], rules: &RowRules, batch: &mut Batch) -> Result<()> {
    if document.len() > rules.document_bytes_max {
        return Err(document_too_long(document.len(), rules.document_bytes_max));
    }
    let id = check_document_with_id(&rules.id, document)?;
    batch.document().extend_from_slice(document);
    batch.end_row(rules, &id)
}
