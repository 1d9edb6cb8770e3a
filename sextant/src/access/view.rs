//! The part of the cluster that one user may see.
//!
//! A view is computed from one catalog and one state of the users, and again when either has
//! changed; both are shared values, so two comparisons of pointers detect that. The filtered
//! catalog shares its objects with the whole catalog. A plan of a prepared statement stays valid as
//! long as its objects are unchanged, so changes of other objects do not affect it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, UserId};
use proto::model::users::{Privilege, Privileges, User, Users};

/// The part of the catalog that a user may see, computed from one catalog and one state of the
/// users.
pub(super) struct View {
    /// The whole catalog.
    catalog: Arc<Catalog>,
    users: Arc<Users>,
    /// The user whose view it is.
    pub(super) user: Arc<User>,
    /// The data set of each bucket that is a version of one.
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

    fn is_of(&self, catalog: &Arc<Catalog>, users: &Arc<Users>) -> bool {
        Arc::ptr_eq(&self.catalog, catalog) && Arc::ptr_eq(&self.users, users)
    }

    /// Returns the bucket under which users know a bucket: the data set of a version, and otherwise
    /// the bucket itself.
    pub(super) fn user_bucket(&self, bucket: BucketId) -> BucketId {
        *self.data_sets.get(&bucket).unwrap_or(&bucket)
    }

    /// Returns the user's privileges on a bucket; those on its data set, if the bucket is a
    /// version.
    pub(super) fn on(&self, bucket: BucketId) -> Privileges {
        self.user.grants.on(self.user_bucket(bucket))
    }

    /// Returns the catalog of the buckets on which the user has a privilege.
    pub(super) fn shown(&self) -> &Arc<Catalog> {
        self.shown.get_or_init(|| self.with_buckets(|privileges| !privileges.is_empty()))
    }

    /// Returns the catalog of the buckets whose figures the user may see.
    pub(super) fn monitored(&self) -> &Arc<Catalog> {
        self.monitored
            .get_or_init(|| self.with_buckets(|privileges| privileges.allow(Privilege::Monitor)))
    }

    /// Returns the part of a catalog that the user may see. `catalog` may be older than that of the
    /// view.
    pub(super) fn shown_of(&self, catalog: &Arc<Catalog>) -> Arc<Catalog> {
        match Arc::ptr_eq(&self.catalog, catalog) {
            true => Arc::clone(self.shown()),
            false => Arc::clone(Self::new(catalog, &self.users, &self.user).shown()),
        }
    }

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

/// Returns a catalog that contains only these buckets, their indexes, and no information about
/// other objects.
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
        bucket_ids: chosen(&whole.bucket_ids, named),
        dropped_buckets: Vec::new(),
        buckets: chosen(&whole.buckets, named),
        nodes: whole.nodes.clone(),
        draining: whole.draining.clone(),
        removed: whole.removed.clone(),
        ended_moves: whole.ended_moves.iter().filter(|ended| kept(&ended.index)).cloned().collect(),
        copies: chosen(&whole.copies, named),
        generations: chosen(&whole.generations, |id| kept(&id.index)),
        newest_generations: chosen(&whole.newest_generations, kept),
        data_sets: chosen(&whole.data_sets, named),
        slice_bytes_max: chosen(&whole.slice_bytes_max, kept),
        indexes,
    }
}

fn chosen<K: Ord + Clone, V: Clone>(
    all: &BTreeMap<K, V>,
    is_chosen: impl Fn(&K) -> bool,
) -> BTreeMap<K, V> {
    let chosen = all.iter().filter(|(key, _)| is_chosen(key));
    chosen.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The newest view of one user, for all its sessions and requests.
#[derive(Default)]
pub(super) struct ViewCell(ArcSwapOption<View>);

impl ViewCell {
    /// Returns the user's view of a catalog and a state of the users; computes it if the stored one
    /// is of others.
    pub(super) fn get(
        &self,
        catalog: &Arc<Catalog>,
        users: &Arc<Users>,
        user: &Arc<User>,
    ) -> Arc<View> {
        if let Some(view) = &*self.0.load()
            && view.is_of(catalog, users)
        {
            return Arc::clone(view);
        }
        let view = Arc::new(View::new(catalog, users, user));
        self.0.store(Some(Arc::clone(&view)));
        view
    }
}

/// The views of users. A view outlives a request, because a user of gRPC has no session.
#[derive(Default)]
pub(super) struct Views(Mutex<BTreeMap<UserId, Arc<ViewCell>>>);

/// The number of users above which the views of users without sessions and requests are dropped:
/// all users that a cluster can have. Together their catalogs have no more buckets than the limit
/// of grants.
const CELLS_KEPT: usize = 1_024;

impl Views {
    /// Returns the number of users with a view.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the view of a user.
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
