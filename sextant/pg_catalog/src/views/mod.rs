//! The views of the catalogue, as queries over its tables. A query gives the columns that have a
//! value; the others of the view are NULL. A view without a query is empty: it is about something that
//! Sextant does not have.

mod information_schema;
mod pg_catalog;

/// Returns the query of a view; `None` if it is empty.
pub(crate) fn query(schema: &str, name: &str) -> Option<&'static str> {
    let views: &[(&str, &str)] = match schema {
        "information_schema" => &information_schema::VIEWS,
        _ => &pg_catalog::VIEWS,
    };
    views.iter().find(|(own, _)| *own == name).map(|(_, query)| *query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::data;

    #[test]
    fn each_query_belongs_to_a_view_and_gives_columns_of_it() {
        let names = crate::analyse::Names {
            database: "sextant",
            search_path: &[],
            is_relation: &|_, _| false,
        };
        let both = [
            ("information_schema", &information_schema::VIEWS[..]),
            ("pg_catalog", &pg_catalog::VIEWS[..]),
        ];
        for (schema, (name, text)) in both
            .into_iter()
            .flat_map(|(schema, views)| views.iter().map(move |view| (schema, view)))
        {
            let view = data()
                .relation(schema, name)
                .unwrap_or_else(|| panic!("{schema} has no view {name}"));
            assert_eq!(view.kind, 'v', "{name}");
            let parsed =
                crate::analyse::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let plan = crate::analyse::analyse(&parsed, &[], names)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            for column in &plan.query.columns {
                assert!(
                    view.columns.iter().any(|own| own.name == column.name),
                    "{name} has no column {}",
                    column.name
                );
            }
        }
    }
}
