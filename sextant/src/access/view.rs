//! The part of the cluster that one user may see.
//!
//! A view is computed from one catalog and one set of users. It is computed again when either of
//! them has changed, which two comparisons of pointers detect, since both are shared values. The
//! filtered catalog shares its objects with the full catalog, so an object that has not changed
//! is the same object in the next view. The plan of a prepared statement therefore stays valid
//! while other objects change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, UserId};
use proto::model::users::{Privilege, Privileges, User, Users};

/// The part of the catalog that a user may see, computed from one catalog and one set of users.
pub(super) struct View {
    /// The full catalog, not filtered for the user.
    catalog: Arc<Catalog>,
    users: Arc<Users>,
    /// The user that has this view.
    pub(super) user: Arc<User>,
    /// The data set of each bucket that holds a version of a data set.
    data_sets: BTreeMap<BucketId, BucketId>,
    shown: OnceLock<Arc<Catalog>>,
    monitored: OnceLock<Arc<Catalog>>,
}

impl View {
    fn new(catalog: &Arc<Catalog>, users: &Arc<Users>, user: &Arc<User>) -> Self {
        let versions = catalog.data_sets.iter();
        let versions = versions
            .flat_map(|(id, set)| set.versions.values().map(move |version| (version.bucket, *id)));
        Self {
            catalog: Arc::clone(catalog),
            users: Arc::clone(users),
            user: Arc::clone(user),
            data_sets: versions.collect(),
            shown: OnceLock::new(),
            monitored: OnceLock::new(),
        }
    }

    /// Returns true if the view was computed from this catalog and these users.
    fn is_computed_from(&self, catalog: &Arc<Catalog>, users: &Arc<Users>) -> bool {
        Arc::ptr_eq(&self.catalog, catalog) && Arc::ptr_eq(&self.users, users)
    }

    /// Returns the bucket by whose name users know `bucket`: for a version of a data set the data
    /// set, otherwise `bucket` itself.
    pub(super) fn user_bucket(&self, bucket: BucketId) -> BucketId {
        *self.data_sets.get(&bucket).unwrap_or(&bucket)
    }

    /// Returns the user's privileges on a bucket. For a version of a data set, these are the
    /// privileges on the data set.
    pub(super) fn privileges_on(&self, bucket: BucketId) -> Privileges {
        self.user.grants.on_bucket(self.user_bucket(bucket))
    }

    /// Returns the catalog with only the buckets on which the user has a privilege.
    pub(super) fn visible_catalog(&self) -> &Arc<Catalog> {
        self.shown.get_or_init(|| self.with_buckets(|privileges| !privileges.is_empty()))
    }

    /// Returns the catalog with only the buckets whose figures the user may see.
    pub(super) fn monitored_catalog(&self) -> &Arc<Catalog> {
        self.monitored
            .get_or_init(|| self.with_buckets(|privileges| privileges.allow(Privilege::Monitor)))
    }

    /// Returns the part of `catalog` that the user may see. `catalog` may be older than the
    /// catalog of the view.
    pub(super) fn visible_part_of(&self, catalog: &Arc<Catalog>) -> Arc<Catalog> {
        match Arc::ptr_eq(&self.catalog, catalog) {
            true => Arc::clone(self.visible_catalog()),
            false => Arc::clone(Self::new(catalog, &self.users, &self.user).visible_catalog()),
        }
    }

    /// Returns the catalog with only the buckets for whose privileges `seen` returns true.
    fn with_buckets(&self, seen: impl Fn(Privileges) -> bool) -> Arc<Catalog> {
        let grants = &self.user.grants;
        if seen(grants.all) {
            return Arc::clone(&self.catalog);
        }
        let granted = grants.buckets.iter().filter(|(_, own)| seen(**own)).map(|(id, _)| *id);
        let mut buckets: BTreeSet<BucketId> = granted.collect();
        let versions = self.data_sets.iter().filter(|(_, set)| buckets.contains(set));
        let versions: Vec<_> = versions.map(|(version, _)| *version).collect();
        buckets.extend(versions);
        Arc::new(restricted(&self.catalog, &buckets))
    }
}

/// Returns a catalog that contains only these buckets and their indexes, without information
/// about other objects.
fn restricted(whole: &Catalog, buckets: &BTreeSet<BucketId>) -> Catalog {
    let named = |id: &BucketId| buckets.contains(id);
    let of_named = |index: &&proto::model::index::IndexInfo| named(&index.bucket);
    let indexes: BTreeMap<_, _> = whole
        .indexes
        .iter()
        .filter(|(_, info)| of_named(&&***info))
        .map(|(id, info)| (*id, Arc::clone(info)))
        .collect();
    let kept = |id: &proto::model::ids::IndexId| indexes.contains_key(id);
    Catalog {
        cas: whole.cas,
        cluster: whole.cluster,
        newest_index: whole.newest_index,
        bucket_ids: filtered_map(&whole.bucket_ids, named),
        dropped_buckets: Vec::new(),
        buckets: filtered_map(&whole.buckets, named),
        nodes: whole.nodes.clone(),
        draining: whole.draining.clone(),
        removed: whole.removed.clone(),
        ended_moves: whole.ended_moves.iter().filter(|ended| kept(&ended.index)).cloned().collect(),
        copies: filtered_map(&whole.copies, named),
        generations: filtered_map(&whole.generations, |id| kept(&id.index)),
        newest_generations: filtered_map(&whole.newest_generations, kept),
        data_sets: filtered_map(&whole.data_sets, named),
        slice_bytes_max: filtered_map(&whole.slice_bytes_max, kept),
        indexes,
    }
}

/// Returns the entries of a map for whose keys `is_chosen` returns true.
fn filtered_map<K: Ord + Clone, V: Clone>(
    all: &BTreeMap<K, V>,
    is_chosen: impl Fn(&K) -> bool,
) -> BTreeMap<K, V> {
    let chosen = all.iter().filter(|(key, _)| is_chosen(key));
    chosen.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// A cell with the newest view of one user, shared by all sessions and requests of the user.
#[derive(Default)]
pub(super) struct ViewCell(ArcSwapOption<View>);

impl ViewCell {
    /// Returns the user's view of this catalog and these users. Computes the view if the stored
    /// one belongs to another catalog or other users.
    pub(super) fn get(
        &self,
        catalog: &Arc<Catalog>,
        users: &Arc<Users>,
        user: &Arc<User>,
    ) -> Arc<View> {
        if let Some(view) = &*self.0.load()
            && view.is_computed_from(catalog, users)
        {
            return Arc::clone(view);
        }
        let view = Arc::new(View::new(catalog, users, user));
        self.0.store(Some(Arc::clone(&view)));
        view
    }
}

/// The stored views, by user. A view outlives a request, so that the next gRPC request of the
/// user, which has no session, need not compute it again.
#[derive(Default)]
pub(super) struct Views(Mutex<BTreeMap<UserId, Arc<ViewCell>>>);

/// The maximum number of stored views before the views of users without sessions and requests are
/// dropped. It is the number of users that a cluster can have. Together the filtered catalogs
/// have no more buckets than the limit of grants.
const CELLS_KEPT: usize = 1_024;

impl Views {
    /// Returns the number of users with a view.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the cell with the view of a user.
    pub(super) fn of(&self, user: UserId) -> Arc<ViewCell> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = cells.get(&user) {
            return Arc::clone(cell);
        }
        if cells.len() >= CELLS_KEPT {
            cells.retain(|_, cell| Arc::strong_count(cell) > 1);
        }
        Arc::clone(cells.entry(user).or_default())
    }
}
