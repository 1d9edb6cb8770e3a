use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use proto::model::bucket::SourceKind;
use proto::model::cut::WritePosition;
use proto::model::ids::{BucketId, Epoch, NodeId, TransactionPlace, UserId};
use proto::rpc::api::{CheckedWrites, Decision, Write, WriteKind, WriteReply};
use proto::rpc::scan::UncommittedView;

use super::*;
use crate::grpc::open_transaction::WriteResult;
use crate::principal::{LoggedInUser, Proof};

const MINUTE: Duration = Duration::from_secs(60);

/// The calls that a bucket has received about its transactions.
#[derive(Default)]
struct Told {
    dropped: AtomicU64,
    back_to: AtomicU64,
    commits: AtomicU64,
}

/// A transaction whose writes fail as a test sets.
struct Scripted {
    id: TransactionId,
    bucket: Arc<BucketInfo>,
    told: Arc<Told>,
    place: Mutex<TransactionPlace>,
    /// The outcomes of the next writes, `None` for success; all writes after these succeed.
    fails: Mutex<VecDeque<Option<ErrorCode>>>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.told.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl BucketTransaction for Scripted {
    fn id(&self) -> TransactionId {
        self.id
    }

    fn bucket(&self) -> &BucketInfo {
        &self.bucket
    }

    fn own_changes(&self) -> Option<UncommittedView> {
        let place = *lock(&self.place);
        (place.0 > 0).then_some(UncommittedView { transaction: self.id, place })
    }

    async fn write(&self, _: Option<Epoch>, writes: CheckedWrites) -> Result<u64> {
        tokio::task::yield_now().await;
        let fails = lock(&self.fails).pop_front().flatten();
        if let Some(code) = fails {
            return Err(Error::new(code, "as the test wants"));
        }
        let affected = writes.writes().len() as u64;
        lock(&self.place).0 += affected;
        Ok(affected)
    }

    async fn rollback_to(&self, place: TransactionPlace) -> Result<()> {
        self.told.back_to.store(place.0, Ordering::Relaxed);
        lock(&self.place).0 += 1;
        Ok(())
    }

    async fn commit(&self, _: Option<Epoch>, _: &[BucketId]) -> Result<WriteReply> {
        tokio::task::yield_now().await;
        self.told.commits.fetch_add(1, Ordering::Relaxed);
        let position = WritePosition { bucket: self.bucket.id, positions: Vec::new() };
        Ok(WriteReply { affected: lock(&self.place).0, position })
    }

    async fn prepare(&self, _: Option<Epoch>, _: TransactionId, _: &[BucketId]) -> Result<u64> {
        Ok(lock(&self.place).0)
    }

    async fn decide(&self, _: TransactionId, _: Decision) -> Result<WriteReply> {
        self.commit(None, &[]).await
    }
}

struct Begun {
    transactions: Transactions,
    told: Arc<Told>,
    numbers: AtomicU64,
}

impl Begun {
    fn new(open_max: usize) -> Self {
        let transactions = Transactions::new(&Env::real(), open_max);
        Self { transactions, told: Arc::default(), numbers: AtomicU64::new(0) }
    }

    fn begin(&self, fails: &[Option<ErrorCode>]) -> Result<Arc<OpenTransaction>> {
        let bucket =
            Arc::new(BucketInfo::new(BucketId(1), "b", 8, SourceKind::Embedded, NodeId(1)));
        let id = TransactionId(self.numbers.fetch_add(1, Ordering::Relaxed) + 1);
        let fails = Mutex::new(fails.iter().copied().collect());
        let (told, place) = (Arc::clone(&self.told), Mutex::default());
        let changes = Arc::new(Scripted { id, bucket: Arc::clone(&bucket), told, place, fails });
        self.transactions.begin((Principal::Trusted, String::new()), changes, bucket, MINUTE)
    }

    fn find(&self, begun: &OpenTransaction) -> Result<Arc<OpenTransaction>> {
        self.transactions.find(begun.number(), &Principal::Trusted)
    }

    fn dropped(&self) -> u64 {
        self.told.dropped.load(Ordering::Relaxed)
    }
}

fn one() -> CheckedWrites {
    let write = Write { id: "a".into(), kind: WriteKind::Upsert("{}".into()) };
    CheckedWrites::new(vec![write], 100).expect("a document")
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
    result.expect_err("an error").code
}

/// Returns a principal that is not the transaction's.
fn stranger() -> Principal {
    let user = LoggedInUser::new(UserId(1), "ada".into(), Proof::Certificate, None);
    Principal::User(Arc::new(user))
}

#[tokio::test]
async fn a_stranger_learns_no_more_of_a_number_than_of_one_that_never_was() {
    let begun = Begun::new(10);
    let transaction = begun.begin(&[]).expect("begun");
    assert!(begun.find(&transaction).is_ok());
    let stranger = stranger();
    let taken = begun.transactions.find(transaction.number(), &stranger);
    let never = begun.transactions.find(TransactionId(99), &stranger);
    let text = |found: Result<Arc<OpenTransaction>>| {
        let error = found.err().expect("an error");
        (error.code, error.to_string().replace("99", "1"))
    };
    let told = text(taken);
    assert_eq!(told, text(never));
    assert_eq!(told.0, ErrorCode::NoTransaction);
}

#[tokio::test]
async fn the_number_of_open_transactions_is_bounded_and_ended_ones_do_not_count() {
    let begun = Begun::new(3);
    let open: Vec<_> = (0..3).map(|_| begun.begin(&[]).expect("begun")).collect();
    assert_eq!(begun.begin(&[]).err().map(|error| error.code), Some(ErrorCode::TooBusy));
    open[0].abort().await.expect("aborted");
    begun.transactions.note_end(&open[0]);
    // The refused transaction is dropped too.
    assert_eq!(begun.dropped(), 2, "an abort rolls back at once");
    begun.begin(&[]).expect("there is room again");
    // Ended transactions are remembered, but not for ever.
    for n in 0..ENDED_MAX {
        let found = begun.find(&open[0]);
        assert_eq!(found.is_ok(), n < ENDED_MAX, "{n}");
        begun.transactions.note_end(&open[1]);
        match n {
            0 => open[1].commit().await.map(|_| ()).expect("committed"),
            _ => {
                let next = begun.begin(&[]).expect("begun");
                next.abort().await.expect("aborted");
                begun.transactions.note_end(&next);
            }
        }
        begun.transactions.note_end(&open[1]);
    }
    assert_eq!(begun.find(&open[0]).err().map(|error| error.code), Some(ErrorCode::NoTransaction));
    assert!(begun.find(&open[1]).is_ok() && begun.find(&open[2]).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_transaction_whose_client_is_away_is_rolled_back() {
    let begun = Begun::new(10);
    let (idle, used) = (begun.begin(&[]).expect("begun"), begun.begin(&[]).expect("begun"));
    for _ in 0..4 {
        tokio::time::sleep(MINUTE / 2).await;
        used.write(one()).await.expect("written");
    }
    assert_eq!(begun.dropped(), 1);
    let found = begun.find(&idle).expect("its end is known");
    let error = found.write(one()).await.expect_err("it has ended");
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.contains("60000 ms"), "{error}");
    assert_eq!(used.write(one()).await, Ok(WriteResult { affected: 1, place: 5 }));
}

#[tokio::test]
async fn a_repeated_commit_has_the_answer_of_the_first_one() {
    let begun = Begun::new(10);
    let transaction = begun.begin(&[]).expect("begun");
    transaction.write(one()).await.expect("written");
    let (first, second) = tokio::join!(transaction.commit(), transaction.commit());
    assert_eq!(first, second);
    assert_eq!(first.expect("committed")[0].affected, 1);
    assert_eq!(begun.told.commits.load(Ordering::Relaxed), 1);
    assert_eq!(code(transaction.write(one()).await), ErrorCode::TransactionState);
    assert_eq!(code(transaction.abort().await), ErrorCode::TransactionState);
    assert_eq!(begun.dropped(), 1);
}

#[tokio::test]
async fn a_write_of_unknown_outcome_is_taken_back_before_the_next_call() {
    let begun = Begun::new(10);
    let script = [None, Some(ErrorCode::DuplicateId), None, Some(ErrorCode::Interrupted)];
    let transaction = begun.begin(&script).expect("begun");
    transaction.write(one()).await.expect("written");
    assert_eq!(code(transaction.write(one()).await), ErrorCode::DuplicateId);
    assert_eq!(transaction.write(one()).await.expect("written").place, 2);
    assert_eq!(begun.told.back_to.load(Ordering::Relaxed), 0, "a refusal leaves nothing in doubt");
    assert_eq!(code(transaction.write(one()).await), ErrorCode::Interrupted);
    let place = transaction.write(CheckedWrites::default()).await.expect("no write");
    assert_eq!((place.affected, place.place), (0, 2));
    assert_eq!(begun.told.back_to.load(Ordering::Relaxed), 2);
    // A call that is given up is as unknown.
    let mut given_up = Box::pin(transaction.write(one()));
    assert!(futures::poll!(&mut given_up).is_pending());
    drop(given_up);
    transaction.commit().await.expect("committed");
    assert_eq!(begun.told.back_to.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_first_write_of_unknown_outcome_ends_its_transaction() {
    let begun = Begun::new(10);
    for script in [[Some(ErrorCode::Interrupted)], [Some(ErrorCode::Conflict)]] {
        let transaction = begun.begin(&script).expect("begun");
        transaction.write(one()).await.expect_err("as the script says");
        assert_eq!(code(transaction.commit().await), ErrorCode::Conflict);
        assert_eq!(code(transaction.write(one()).await), ErrorCode::Conflict);
        transaction.abort().await.expect("it has ended");
    }
    assert_eq!(begun.told.commits.load(Ordering::Relaxed), 0);
    assert_eq!(begun.dropped(), 2);
}
