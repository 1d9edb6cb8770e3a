//! Tests of notices about comparisons with texts that are true for no row.

use super::*;

/// A client that records its notices and their hints.
struct Noted {
    client: Client,
    notices: tokio::sync::mpsc::UnboundedReceiver<String>,
    _reading: Task,
}

impl Noted {
    async fn new(cluster: &Cluster) -> Self {
        let mut config = tokio_postgres::Config::new();
        let connected = config.user("me").connect_raw(cluster.dial(), NoTls).await;
        let (client, mut connection) = connected.expect("a session");
        let (told, notices) = tokio::sync::mpsc::unbounded_channel();
        let _reading = cluster.env.spawn_request("client", async move {
            let poll = move |context: &mut std::task::Context<'_>| connection.poll_message(context);
            let mut messages = futures::stream::poll_fn(poll);
            while let Some(Ok(message)) = messages.next().await {
                if let tokio_postgres::AsyncMessage::Notice(notice) = message {
                    let hint = notice.hint().unwrap_or_default();
                    let _ = told.send(format!("{} | {hint}", notice.message()));
                }
            }
        });
        Self { client, notices, _reading }
    }

    fn told(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }

    async fn notices_of(&mut self, sql: &str) -> Vec<String> {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        self.told()
    }
}

async fn people(cluster: &Cluster) -> Noted {
    let mut noted = Noted::new(cluster).await;
    let sql = "CREATE BUCKET b; CREATE INDEX by_age ON b (age, name) INCLUDE (member, mixed); \
               INSERT INTO b (id, doc) VALUES \
               ('a', '{\"age\": 30, \"name\": \"x\", \"member\": true, \"mixed\": 1}'), \
               ('b', '{\"age\": 31.5, \"name\": null, \"member\": false, \"mixed\": \"1\"}'), \
               ('c', '{\"age\": null}')";
    assert_eq!(noted.notices_of(sql).await, Vec::<String>::new());
    noted
}

#[tokio::test]
async fn a_comparison_of_numbers_with_a_text_is_told_with_what_to_write() {
    let cluster = Cluster::new();
    let mut noted = people(&cluster).await;
    let with_30 = "values of column \"age\" of index \"by_age\" are numbers in a sample, and '30' is a text: \
                   the comparison is true for none of them";
    for (condition, hint) in [
        ("age = '30'", "write age = 30"),
        ("age > '30' AND name = 'x'", "write age > 30"),
        ("'30' < age", "write age > 30"),
        ("name = 'x' AND (age IN (7, '30') OR id = 'c')", "write age = 30"),
        ("age BETWEEN '30' AND '40'", "write age >= 30"),
        ("NOT age = '30'", "write age = 30"),
        ("age LIKE '30'", "write age::text LIKE '30'"),
    ] {
        let notices = noted.notices_of(&format!("SELECT id FROM by_age WHERE {condition}")).await;
        assert_eq!(notices, [format!("{with_30} | {hint}")], "{condition}");
    }
    for (condition, hint) in [
        ("age = 'old'", "write age::text = 'old'"),
        ("member = 'true'", "write member = TRUE"),
        ("mixed = '1' AND member = 'no'", "write member = FALSE"),
    ] {
        let notices = noted.notices_of(&format!("SELECT id FROM by_age WHERE {condition}")).await;
        assert_eq!(notices.len(), 1, "{condition}: {notices:?}");
        assert!(notices[0].ends_with(hint), "{condition}: {notices:?}");
    }
    for condition in [
        "age = 30",
        "name = '30'",
        "mixed = '1'",
        "age::text = '30'",
        "age = '30'::int8",
        "id = '30'",
    ] {
        let notices = noted.notices_of(&format!("SELECT id FROM by_age WHERE {condition}")).await;
        assert_eq!(notices, Vec::<String>::new(), "{condition}");
    }
    let copied = noted.client.copy_out("COPY (SELECT id FROM by_age WHERE age = '30') TO STDOUT");
    let rows: Vec<_> = copied.await.expect("rows").collect().await;
    assert_eq!((rows.len(), noted.told().len()), (0, 1));
    let quiet = "SET client_min_messages = warning; SELECT id FROM by_age WHERE age = '30'";
    assert_eq!(noted.notices_of(quiet).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_index_is_sampled_once_a_minute_and_never_for_a_statement_that_was_executed_before() {
    let cluster = Cluster::new();
    let mut noted = people(&cluster).await;
    let scans = || cluster.memory.scans.swap(0, Ordering::Relaxed);
    scans();
    noted.notices_of("SELECT id FROM by_age WHERE age > 29").await;
    assert_eq!(scans(), 1, "no text");
    let select = noted.client.prepare("SELECT id FROM by_age WHERE age = $1").await.expect("valid");
    for (executions, sample) in [(1, 2), (2, 0), (3, 0)] {
        let found = noted.client.query(&select, &[&"30"]).await.expect("rows");
        assert_eq!((found.len(), scans()), (0, sample + 1), "execution {executions}");
        let hints: Vec<_> = noted.told();
        assert_eq!(hints.len(), usize::from(executions == 1), "{hints:?}");
        if let Some(told) = hints.first() {
            assert!(told.contains("$1 is a text"), "{told}");
            assert!(told.ends_with("write age = $1::int8"), "{told}");
        }
        tokio::time::advance(Duration::from_secs(61)).await;
    }
    let text = "SELECT id FROM by_age WHERE age = '30'";
    for sample in [2, 0, 0] {
        assert_eq!(noted.notices_of(text).await.len(), 1);
        assert_eq!(scans(), sample + 1);
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    noted.notices_of(text).await;
    assert_eq!(scans(), 3, "a minute has passed");
}

#[tokio::test(start_paused = true)]
async fn a_sample_that_does_not_come_soon_is_done_without() {
    let cluster = Cluster::new();
    let mut noted = Noted::new(&cluster).await;
    noted.notices_of("CREATE BUCKET b; CREATE INDEX stuck ON b (age)").await;
    let began = tokio::time::Instant::now();
    let sql = "SET statement_timeout = '1s'; SELECT id FROM stuck WHERE age = '30'";
    let refused = noted.client.batch_execute(sql).await.expect_err("it never answers");
    assert_eq!(state(&refused), "57014");
    assert!(began.elapsed() < Duration::from_millis(1300), "{:?}", began.elapsed());
    assert_eq!(noted.told(), Vec::<String>::new());
}
