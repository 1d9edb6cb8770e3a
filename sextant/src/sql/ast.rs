//! Statements: the output of the parser.
//!
//! Expressions are [`proto::expr::Expr`]. Their parameters stay [`Expr::Parameter`] until a portal binds them. Names of
//! buckets, indexes and settings are folded to lower case; paths keep their case.

use std::fmt;

use proto::expr::aggregate::AggregateFunction;
use proto::expr::{ColumnType, Expr};
use proto::model::bucket::SourceKind;
use proto::model::data_set::Files;
use proto::model::ids::{SliceNo, TokenId, TransactionId, VbucketId};
use proto::model::index::Compression;
use proto::model::users::{GrantOn, Privileges, UserLimits};
use proto::rpc::api::CoordinatorChange;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `CREATE BUCKET`.
    CreateBucket(CreateBucket),
    /// `DROP BUCKET`.
    DropBucket {
        /// The bucket.
        name: String,
        /// True if an absent bucket is no error.
        if_exists: bool,
        /// `RESTRICT`: refused while the bucket has indexes.
        restrict: bool,
    },
    /// `INSERT INTO`.
    Insert(Insert),
    /// `DELETE FROM`, by id only.
    Delete {
        /// The bucket.
        bucket: String,
        /// The ids.
        ids: Vec<Expr>,
    },
    /// `SELECT` from an index, from a bucket by id, or of constants.
    Select(Select),
    /// A query of PostgreSQL's catalogue, which has no rows.
    Catalogue(CatalogueQuery),
    /// `EXPLAIN SELECT`.
    Explain(Select),
    /// `COPY b FROM STDIN`.
    CopyIn {
        /// The bucket.
        bucket: String,
        /// The field that holds the id.
        id_field: String,
    },
    /// `COPY (SELECT …) TO STDOUT`.
    CopyOut(Select),
    /// `CREATE INDEX`.
    CreateIndex(CreateIndex),
    /// `BUILD INDEX ON b (i, …)`.
    BuildIndex {
        /// The bucket.
        bucket: String,
        /// The indexes.
        indexes: Vec<String>,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// The index.
        name: String,
        /// True if an absent index is no error.
        if_exists: bool,
    },
    /// `CANCEL BUILD i`.
    CancelBuild(String),
    /// `ALTER INDEX i …` with another definition, or `REINDEX i`.
    AlterIndex {
        /// The index.
        name: String,
        /// The changes.
        change: IndexChange,
    },
    /// `ALTER INDEX i RENAME TO j`.
    RenameIndex {
        /// The index.
        name: String,
        /// Its new name.
        to: String,
    },
    /// `CREATE BUCKET b FROM FILES`.
    CreateDataSet(CreateDataSet),
    /// `ALTER BUCKET b LOAD VERSION 'v' FROM 'pattern'`.
    LoadVersion {
        /// The data set.
        bucket: String,
        /// The name of the version.
        version: String,
        /// Its files.
        files: Files,
    },
    /// A statement about the placement of slices and vbuckets.
    Admin(Admin),
    /// A statement about users and privileges.
    User(UserStatement),
    /// `EXPLAIN REBALANCE` of one index, or of all.
    ExplainRebalance(Option<String>),
    /// `SHOW`.
    Show(Show),
    /// `SET name = value`. `None` stands for `RESET name` and `SET name = DEFAULT`.
    Set {
        /// The setting.
        name: String,
        /// The new value; `None` restores the default.
        value: Option<String>,
        /// `SET LOCAL`: until the end of the transaction.
        local: bool,
    },
    /// `RESET ALL`.
    ResetAll,
    /// `SET TRANSACTION`: modes of the open transaction.
    SetTransaction(TransactionModes),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION`: modes of later transactions.
    SetCharacteristics(TransactionModes),
    /// Statements about features that Sextant lacks, of which there is nothing to reset.
    Nothing {
        /// The command tag of the answer.
        tag: &'static str,
    },
    /// `BEGIN`, `START TRANSACTION`.
    Begin(TransactionModes),
    /// `COMMIT`, `END`.
    Commit,
    /// `ROLLBACK`, `ABORT`.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint(String),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackTo(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
    /// `DISCARD ALL`.
    DiscardAll,
    /// `DEALLOCATE name`, or `ALL`.
    Deallocate(Option<String>),
}

/// A statement about users and privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserStatement {
    /// `CREATE USER u …`.
    Create {
        /// The user.
        name: String,
        /// The first secret.
        secret: Option<SecretText>,
        /// The limits that were given.
        limits: UserLimits,
    },
    /// `ALTER USER u …`.
    Alter {
        /// The user.
        name: String,
        /// The change.
        change: AlterUser,
    },
    /// `DROP USER u`.
    Drop {
        /// The user.
        name: String,
        /// True if an absent user is no error.
        if_exists: bool,
    },
    /// `GRANT … ON … TO u`.
    Grant {
        /// The user.
        user: String,
        /// The privileges.
        privileges: Privileges,
        /// The object.
        on: GrantOn,
    },
    /// `REVOKE … ON … FROM u`.
    Revoke {
        /// The user.
        user: String,
        /// The privileges.
        privileges: Privileges,
        /// The object.
        on: GrantOn,
    },
}

/// A change by `ALTER USER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterUser {
    /// `PASSWORD '…'`, `TOKEN`.
    Secret(SecretText),
    /// `PASSWORD NULL`.
    DropPassword,
    /// `DROP TOKEN n`.
    DropToken(TokenId),
    /// `WITH (…)`: the limits that were given.
    Limits(UserLimits),
}

/// A secret as a statement has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretText {
    /// `PASSWORD '…' [VALID UNTIL '…']`.
    Password {
        /// The password, or its verifier in PostgreSQL's form.
        password: Sensitive,
        /// The end, in milliseconds since 1970; `None` for none.
        until_unix_ms: Option<u64>,
    },
    /// `TOKEN [VALID UNTIL '…']`.
    Token {
        /// The end, in milliseconds since 1970; `None` if it was not given.
        until_unix_ms: Option<u64>,
    },
}

/// A text that nothing prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive(pub String);

impl fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("'…'")
    }
}

/// The modes of a transaction that were given. `DEFERRABLE` says nothing: no read is ever deferred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// `READ ONLY` (true) or `READ WRITE` (false).
    pub read_only: Option<bool>,
    /// `ISOLATION LEVEL …`, in lower case. A transaction has snapshot isolation at each level that is accepted.
    pub isolation: Option<&'static str>,
}

/// `CREATE BUCKET`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateBucket {
    /// Its name.
    pub name: String,
    /// True if an existing bucket is no error.
    pub if_not_exists: bool,
    /// The source that numbers its mutations.
    pub source: SourceKind,
    /// `vbuckets`, if given.
    pub vbuckets: Option<u16>,
    /// `projectors`, if given.
    pub projectors: Option<u16>,
    /// `copies`, if given.
    pub copies: Option<u8>,
}

/// `INSERT INTO b (id, doc) VALUES …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The bucket.
    pub bucket: String,
    /// Id and document of each row.
    pub rows: Vec<(Expr, Expr)>,
    /// `ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`.
    pub replace: bool,
}

/// A `SELECT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// `DISTINCT`.
    pub distinct: bool,
    /// The select list.
    pub items: Vec<SelectItem>,
    /// The index or bucket.
    pub from: Option<String>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`: a number or a parameter.
    pub limit: Option<Expr>,
    /// `OFFSET`: a number or a parameter.
    pub offset: Option<Expr>,
}

/// A query of PostgreSQL's catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueQuery {
    /// The names of its columns. A `*` stands for none.
    pub columns: Vec<String>,
    /// True if it has a LIMIT, as the queries of psql's completion.
    pub limited: bool,
}

/// One item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`.
    Star,
    /// An expression.
    Expr {
        /// The computed expression.
        expr: SelectExpr,
        /// `AS alias`, as written.
        alias: Option<String>,
    },
}

/// The expression of an item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectExpr {
    /// A value of each row.
    Scalar(Expr),
    /// An aggregate over all rows.
    Aggregate {
        /// The aggregate function.
        function: AggregateFunction,
        /// The aggregated expression; `None` for `count(*)`.
        argument: Option<Expr>,
        /// A cast of the result.
        cast: Option<ColumnType>,
    },
    /// A function of the session, such as `version()`, with its arguments.
    Session(String, Vec<Expr>),
}

/// One item of `ORDER BY`.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// The sort key; an integer is the number of an item of the select list.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST` (true) or `NULLS LAST` (false), if given.
    pub nulls_first: Option<bool>,
}

/// `CREATE INDEX`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// Its name.
    pub name: String,
    /// True if an existing index is no error.
    pub if_not_exists: bool,
    /// `PRIMARY`: no keys.
    pub primary: bool,
    /// The bucket.
    pub bucket: String,
    /// The key parts.
    pub keys: Vec<KeyItem>,
    /// `INCLUDE (…)`.
    pub include: Vec<TextExpr>,
    /// `WHERE`.
    pub predicate: Option<Expr>,
    /// `PARTITION BY`; `None` partitions by document id.
    pub partition: Option<Partition>,
    /// `slices`, if given.
    pub slices: Option<u16>,
    /// `replicas`, if given.
    pub replicas: Option<u8>,
    /// `separate_included_columns`.
    pub separate_included_columns: bool,
    /// `included_kb_max`, if given.
    pub included_kb_max: Option<u16>,
    /// `compression`.
    pub compression: Compression,
    /// `slice_bytes_max`: the size of a slice in bytes from which on the index gets more of them; 0 means never.
    pub slice_bytes_max: Option<u64>,
    /// `defer_build`.
    pub defer_build: bool,
    /// The statement, as written.
    pub sql: String,
}

/// A change of an index that needs a new generation.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexChange {
    /// `REINDEX`: none.
    Nothing,
    /// `SET (option = …, …)`.
    Options(IndexOptions),
    /// `SET KEYS (…)`.
    Keys(Vec<KeyItem>),
    /// `ADD INCLUDE (…)`.
    AddInclude(Vec<TextExpr>),
    /// `DROP INCLUDE (…)`.
    DropInclude(Vec<TextExpr>),
    /// `SET WHERE …`; `None` for `DROP WHERE`.
    Predicate(Option<Expr>),
    /// `PARTITION BY HASH (…)`; `None` for the document's id.
    Partition(Option<Partition>),
}

/// Options of an index; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexOptions {
    /// `slices`.
    pub slices: Option<u16>,
    /// `replicas`.
    pub replicas: Option<u8>,
    /// `separate_included_columns`.
    pub separate_included_columns: Option<bool>,
    /// `included_kb_max`.
    pub included_kb_max: Option<u16>,
    /// `compression`.
    pub compression: Option<Compression>,
    /// `slice_bytes_max`.
    pub slice_bytes_max: Option<u64>,
}

/// An expression with its text, which may become a column's name.
#[derive(Clone, Debug, PartialEq)]
pub struct TextExpr {
    /// The expression.
    pub expr: Expr,
    /// Its text, as written.
    pub text: String,
}

/// One part of an index key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyItem {
    /// The expression that is evaluated for each document.
    pub key: TextExpr,
    /// `DESC`.
    pub descending: bool,
    /// `INCLUDE MISSING`.
    pub include_missing: bool,
}

/// Statements about the placement of slices, vbuckets and copies of buckets. Nodes are named by number or address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    /// `REBALANCE [INDEX i]`.
    Rebalance {
        /// Only this index.
        index: Option<String>,
    },
    /// `CANCEL REBALANCE [INDEX i]`.
    CancelRebalance {
        /// Only of this index.
        index: Option<String>,
    },
    /// `CANCEL TRANSACTION n`.
    CancelTransaction(TransactionId),
    /// `DRAIN NODE 'n'`, `CANCEL DRAIN NODE 'n'`.
    DrainNode {
        /// The node.
        node: String,
        /// True begins to drain, false stops it.
        drain: bool,
    },
    /// `REMOVE NODE 'n' [FORCE]`.
    RemoveNode {
        /// The node.
        node: String,
        /// FORCE: other indexers rebuild the slices that it alone has.
        force: bool,
    },
    /// `ADD COORDINATOR 'n' AT 'host:port'`, `REMOVE COORDINATOR 'n'`.
    ChangeCoordinators(CoordinatorChange),
    /// `ALTER INDEX i MOVE SLICE k [FROM 'm'] TO 'n'`.
    MoveSlice {
        /// The index.
        index: String,
        /// The slice.
        slice: SliceNo,
        /// The node that gives its copy away; `None` for the first node of the slice.
        from: Option<String>,
        /// The node that gets it.
        to: String,
    },
    /// `ALTER BUCKET b MOVE VBUCKET k, … TO 'n'`.
    MoveVbuckets {
        /// The bucket.
        bucket: String,
        /// The vbuckets.
        vbuckets: Vec<VbucketId>,
        /// The projector that gets them.
        to: String,
    },
    /// `ALTER BUCKET b MOVE TO 'n'`.
    MoveBucket {
        /// The bucket.
        bucket: String,
        /// The projector that leads it then.
        to: String,
    },
    /// `ALTER BUCKET b SET (copies = n)`.
    SetCopies {
        /// The bucket.
        bucket: String,
        /// The number of copies.
        copies: u8,
    },
    /// `ALTER BUCKET b SET (version_idle = …)`.
    SetVersionIdle {
        /// The data set.
        bucket: String,
        /// The time for which an old version is kept after the last request for it.
        idle_ms: u64,
    },
    /// `ALTER BUCKET b CANCEL VERSION 'v'`.
    CancelVersion {
        /// The data set.
        bucket: String,
        /// The version, which is loading.
        version: String,
    },
    /// `ALTER BUCKET b CANCEL MOVES`.
    CancelVbuckets {
        /// The bucket.
        bucket: String,
    },
    /// `ALTER INDEX i SET (separate_included_columns = …)`.
    SeparateIncludedColumns {
        /// The index.
        index: String,
        /// True: the included values have fragments of their own.
        separate: bool,
    },
    /// `ALTER INDEX i SET (slice_bytes_max = …)`.
    SetSliceBytesMax {
        /// The index.
        index: String,
        /// The size of a slice, in bytes; 0 means never.
        bytes: u64,
    },
    /// `ALTER INDEX i SET (replicas = r)`.
    SetReplicas {
        /// The index.
        index: String,
        /// Copies besides the first.
        replicas: u8,
    },
}

/// `PARTITION BY` of an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Partition {
    /// `HASH (…)`.
    Hash(Vec<Expr>),
    /// `RANGE (expr) SPLIT AT (…)`.
    Range {
        /// The expression.
        expr: Expr,
        /// The split points, literals; none if they are to be taken from documents.
        points: Vec<Expr>,
    },
}

/// `CREATE BUCKET … FROM FILES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDataSet {
    /// Its name.
    pub name: String,
    /// True if it is no error that the bucket is there.
    pub if_not_exists: bool,
    /// The number of partitions of each version.
    pub partitions: Option<u16>,
    /// The number of projectors that have each partition.
    pub replication: Option<u16>,
    /// The time for which an old version is kept after the last request for it.
    pub idle_ms: Option<u64>,
}

/// The kinds of `SHOW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// `SHOW BUCKETS`.
    Buckets,
    /// `SHOW COPIES`.
    Copies,
    /// `SHOW INDEXES`.
    Indexes,
    /// `SHOW NODES`.
    Nodes,
    /// `SHOW SLICES`.
    Slices,
    /// `SHOW MOVES`.
    Moves,
    /// `SHOW ROLLBACKS`.
    Rollbacks,
    /// `SHOW HOLDS`.
    Holds,
    /// `SHOW VERSIONS`.
    Versions,
    /// `SHOW USERS`.
    Users,
    /// `SHOW GRANTS`, of one user or of all.
    Grants(Option<String>),
    /// `SHOW TRANSACTIONS`.
    Transactions,
    /// `SHOW TRANSACTION n`.
    Transaction(TransactionId),
    /// `SHOW name`, `write_position` and `transaction_id` included.
    Setting(String),
    /// `SHOW ALL`.
    All,
}
