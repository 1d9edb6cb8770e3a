//! The judgement of a scan's rows.

use proto::model::cut::Cut;
use proto::model::ids::{Epoch, VbucketId};

use super::query::Answer;
use super::{Asked, Read, Reader};
use crate::sim::client::session::Session;
use crate::sim::judge::marks::cut_of;
use crate::sim::judge::oracle::{Shown, documents, shown};
use crate::sim::violation;

/// The maximum number of scans of a run that may remain unjudged. Most runs have none.
const UNJUDGED_MAX: u64 = 2;

impl Reader {
    /// Judges a scan by the model at its epoch's cut: the whole answer, or the rows before an
    /// error.
    pub(super) async fn judge(&self, session: &Session, asked: &Asked<'_>, read: &Read) {
        let Some(epoch) = read.epoch else { return };
        // A rollback may remove an epoch at once, before the judge has received it; then no rows were shown.
        let shows_nothing = read.found.is_empty() && read.aggregates.is_none();
        if read.error.is_some() && shows_nothing {
            return;
        }
        let (name, bucket) = (asked.index.name, asked.info.bucket);
        let Some(cut) = cut_of(&session.marks, bucket, epoch).await else {
            // The judge's watch was interrupted while the epoch existed ([`crate::sim::judge::marks`]).
            let catalog = session.router.catalog();
            if catalog.buckets.get(&bucket).is_some_and(|bucket| bucket.is_dead(epoch))
                && self.may_leave_unjudged()
            {
                return;
            }
            let what = format!("a scan of {name} read epoch {epoch}, which was never published");
            return violation(&self.summary, what);
        };
        if !self.covers_writes(asked, &cut) {
            let what = format!(
                "a scan of {name} at epoch {epoch} with {cut:?} misses an acknowledged write {:?}",
                asked.at_least
            );
            violation(&self.summary, what);
        }
        let of_version = session.versions.documents(bucket);
        let mut documents = of_version.unwrap_or_else(|| documents(&self.truth, bucket, &cut));
        asked.own.put_over(&mut documents);
        let entries = shown(asked.index, &documents);
        let is_whole = read.error.is_none();
        let wrong = match (asked.query.answer(asked.index, entries), &read.aggregates) {
            (Answer::Rows(expected), None) => self.compare_rows(asked, read, epoch, expected),
            (Answer::Aggregates(_), None) if !is_whole => None,
            (Answer::Aggregates(expected), Some(found)) if *found == expected => {
                self.count(|summary| {
                    summary.scans += 1;
                    summary.note((name, epoch, found));
                });
                None
            }
            (expected, found) => Some(format!("aggregates {found:?}, not {expected:?}")),
        };
        if let Some(wrong) = wrong {
            let text = format!("{name} at epoch {epoch}, {:?}: {wrong}", asked.query);
            violation(&self.summary, text);
        }
    }

    /// Counts a scan that cannot be judged; false if there are more than interrupted watches
    /// explain.
    fn may_leave_unjudged(&self) -> bool {
        let mut summary = self.summary.lock().expect("not poisoned");
        summary.scans_unjudged += 1;
        summary.scans_unjudged <= UNJUDGED_MAX
    }

    /// True if an epoch's cut covers the writes that the scan required, except lost ones.
    fn covers_writes(&self, asked: &Asked<'_>, cut: &Cut) -> bool {
        let Some(write) = &asked.at_least else { return true };
        let bucket = asked.info.bucket;
        let losses = self.truth.losses();
        let lost = |v: VbucketId, p| {
            let again = losses.get(usize::from(v.0)) != asked.losses.get(usize::from(v.0));
            again || self.truth.present_log(bucket, v, p).is_none()
        };
        let covers = |v, p| self.truth.is_before(bucket, v, p, cut.get(v));
        write.positions.iter().all(|(v, p)| lost(*v, *p) || covers(*v, *p))
    }

    /// Compares rows with the expected ones, or with their beginning if the scan ended with an
    /// error; returns a text about a difference.
    fn compare_rows(
        &self,
        asked: &Asked<'_>,
        read: &Read,
        epoch: Epoch,
        expected: Vec<Shown>,
    ) -> Option<String> {
        let is_whole = read.error.is_none();
        let mut found = read.found.clone();
        let in_order = asked.query.ordered || asked.query.distinct.is_some();
        if !in_order {
            found.sort_by(|(one, _), (other, _)| one.cmp(other));
            if asked.query.reverse {
                found.reverse();
            }
        }
        let found: Vec<Shown> = found.into_iter().map(|(_, shown)| shown).collect();
        self.count(|summary| {
            let (name, entries) = (asked.index.name, found.len() as u64);
            summary.note((name, epoch, &found));
            summary.entries += entries;
            summary.scans += u64::from(is_whole);
            summary.parts_judged += u64::from(!is_whole && entries > 0);
        });
        let fits = match (is_whole, in_order) {
            (true, _) => found == expected,
            (false, true) => expected.starts_with(&found),
            (false, false) => is_part(&found, &expected),
        };
        if fits {
            return None;
        }
        let at = found.iter().zip(&expected).position(|(f, e)| f != e);
        let at = at.unwrap_or(found.len().min(expected.len()));
        let (here, there) = (found.get(at), expected.get(at));
        let (found, expected) = (found.len(), expected.len());
        let end = if is_whole { "the end" } else { "an error" };
        Some(format!(
            "{found} entries up to {end}, {expected} expected; entry {at} is {here:?}, not {there:?}"
        ))
    }
}

/// True if all rows are among the expected ones, each once, in the same order.
fn is_part(found: &[Shown], expected: &[Shown]) -> bool {
    let mut expected = expected.iter();
    found.iter().all(|row| expected.any(|expected| expected == row))
}
