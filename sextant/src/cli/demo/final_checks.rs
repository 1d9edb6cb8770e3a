//! The demo's checks after the traffic has ended, which compare every index with the model, row
//! for row.

use futures::StreamExt;
use proto::Result;
use tokio::time::Instant;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::model::{City, Model};
use super::report::{Report, progress};
use super::sql_error::sql_error;

/// Runs the final checks and records the results.
pub async fn run(client: &Client, model: &Model, quiet: bool, report: &mut Report) -> Result<()> {
    client.batch_execute("SET consistency = 'request_plus'").await.map_err(sql_error("SET"))?;
    full_scan(client, model, report).await?;
    let bar = progress(quiet, 1, "comparing every index with the model");
    let questions = expected_results(model);
    bar.set_length(questions.len() as u64);
    for (statement, expected) in questions {
        let found = rows(client, &statement).await?;
        report.scans += 1;
        report.count_check(found == expected, || difference(&statement, &found, &expected));
        bar.inc(1);
    }
    bar.finish();
    Ok(())
}

/// Reads an index completely and in order, five times, and records the best rate.
async fn full_scan(client: &Client, model: &Model, report: &mut Report) -> Result<()> {
    let statement = "COPY (SELECT id, country, population FROM by_country \
                     ORDER BY country, population DESC) TO STDOUT";
    let mut best = f64::MAX;
    let mut text = Vec::new();
    for _ in 0..5 {
        text.clear();
        let begun = Instant::now();
        let stream = client.copy_out(statement).await.map_err(sql_error("COPY TO STDOUT"))?;
        let mut stream = Box::pin(stream);
        while let Some(piece) = stream.next().await {
            text.extend_from_slice(&piece.map_err(sql_error("COPY TO STDOUT"))?);
        }
        best = best.min(begun.elapsed().as_secs_f64());
        report.scans += 1;
    }
    let lines =
        |rows: Vec<[String; 3]>| rows.iter().map(|row| row.join("\t") + "\n").collect::<String>();
    let expected = lines(model.by_country(|_| true));
    report.count_check(text == expected.as_bytes(), || {
        "COPY of by_country differs from the model".into()
    });
    report.scan_rows_per_s = (model.0.len() as f64 / best) as u64;
    Ok(())
}

/// The rows of a result; each value is text or NULL.
type Rows = Vec<Vec<Option<String>>>;

async fn rows(client: &Client, statement: &str) -> Result<Rows> {
    let messages = client.simple_query(statement).await.map_err(sql_error(statement))?;
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|n| row.get(n).map(str::to_owned)).collect())
        }
        _ => None,
    };
    Ok(messages.into_iter().filter_map(row).collect())
}

/// Returns rows without NULL values.
fn rows_without_null<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> Rows {
    rows.into_iter().map(|row| row.into_iter().map(Some).collect()).collect()
}

/// Returns statements with the model's answers to them.
fn expected_results(model: &Model) -> Vec<(String, Rows)> {
    let mut questions = country_queries(model);
    questions.extend(name_queries(model));
    let big = |city: &City| city.population() >= 1_000_000;
    let mut biggest: Vec<_> = model.0.iter().filter(|(_, city)| big(city)).collect();
    biggest.sort_by_key(|(id, city)| (-city.population(), (*id).clone()));
    let biggest = biggest.into_iter().map(|(id, city)| {
        [
            id.clone(),
            city.population().to_string(),
            city.name().to_owned(),
            city.country().to_owned(),
        ]
    });
    questions.push((
        "SELECT * FROM big_cities ORDER BY population DESC".into(),
        rows_without_null(biggest),
    ));
    questions
}

/// Returns statements over the index by country, with the model's answers.
fn country_queries(model: &Model) -> Vec<(String, Rows)> {
    let select = "SELECT id, country, population FROM by_country";
    let order = "ORDER BY country, population DESC";
    let mut countries: Vec<&str> = model.0.values().map(City::country).collect();
    countries.sort();
    countries.dedup();
    let mut questions = vec![(
        "SELECT DISTINCT country FROM by_country ORDER BY country".to_owned(),
        rows_without_null(countries.iter().map(|country| [(*country).to_owned()])),
    )];
    for country in countries.iter().step_by(5) {
        let wanted = |city: &City| city.country() == *country && city.population() >= 5_000;
        let all = model.by_country(wanted);
        let predicate = format!("country = '{country}' AND population >= 5000");
        questions.push((
            format!("SELECT count(*), max(population), min(population) FROM by_country WHERE {predicate}"),
            vec![vec![
                Some(all.len().to_string()),
                all.first().map(|row| row[2].clone()),
                all.last().map(|row| row[2].clone()),
            ]],
        ));
        let page: Vec<_> = all.iter().skip(3).take(20).cloned().collect();
        questions.push((
            format!("{select} WHERE {predicate} {order} LIMIT 20 OFFSET 3"),
            rows_without_null(page),
        ));
        let mut reverse = all;
        reverse.reverse();
        questions.push((
            format!("{select} WHERE {predicate} ORDER BY country DESC, population"),
            rows_without_null(reverse),
        ));
    }
    let some_of = |city: &City| ["FR", "NZ", "IS"].contains(&city.country());
    questions.push((
        format!("{select} WHERE country IN ('NZ', 'FR', 'IS') {order}"),
        rows_without_null(model.by_country(some_of)),
    ));
    let between =
        |city: &City| city.country() > "S" && (10_000..=20_000).contains(&city.population());
    questions.push((
        format!("{select} WHERE country > 'S' AND population BETWEEN 10000 AND 20000 {order}"),
        rows_without_null(model.by_country(between)),
    ));
    questions
}

/// Returns statements over the index by name, with the model's answers.
fn name_queries(model: &Model) -> Vec<(String, Rows)> {
    let select = "SELECT id, name FROM by_name";
    let mut questions = Vec::new();
    for prefix in ["san ", "new ", "saint-", "é", "zz"] {
        let rows = model.by_name(|city| city.name().to_lowercase().starts_with(prefix));
        let statement =
            format!("{select} WHERE lower(name) LIKE '{prefix}%' ORDER BY lower(name), country");
        questions.push((statement, rows_without_null(rows)));
    }
    questions.push((
        format!("{select} ORDER BY lower(name), country"),
        rows_without_null(model.by_name(|_| true)),
    ));
    questions
}

/// Returns a text about the first difference between the found and the expected rows of a
/// statement.
fn difference(statement: &str, found: &Rows, expected: &Rows) -> String {
    let at = found.iter().zip(expected).position(|(found, expected)| found != expected);
    let at = at.unwrap_or(found.len().min(expected.len()));
    format!(
        "{statement}: {} rows, not {}; row {at} is {:?}, not {:?}",
        found.len(),
        expected.len(),
        found.get(at),
        expected.get(at)
    )
}
