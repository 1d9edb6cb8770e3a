//! The demo's model: a map of the expected documents, with a simple evaluation of each query over
//! all of them. The model shares no code with the product.

use std::collections::BTreeMap;

use serde_json::Value;

/// A city, as a JSON document.
#[derive(Clone, Debug)]
pub struct City {
    /// The complete JSON document.
    pub document: Value,
}

impl City {
    /// Returns a field of the document as text.
    fn text_field(&self, field: &str) -> &str {
        self.document[field].as_str().unwrap_or_default()
    }

    /// Returns the name of the city.
    pub fn name(&self) -> &str {
        self.text_field("name")
    }

    /// Returns the country of the city.
    pub fn country(&self) -> &str {
        self.text_field("country")
    }

    /// Returns the population of the city.
    pub fn population(&self) -> i64 {
        self.document["population"].as_i64().unwrap_or_default()
    }

    /// Returns a copy of the city with another population.
    pub fn with_population(&self, population: i64) -> Self {
        let mut document = self.document.clone();
        document["population"] = population.into();
        Self { document }
    }
}

/// All cities, by the id of their document.
#[derive(Clone, Debug, Default)]
pub struct Model(pub BTreeMap<String, City>);

impl Model {
    /// Parses a model from JSON lines, one city per line.
    pub fn parse(lines: &str) -> Result<Self, serde_json::Error> {
        let mut cities = BTreeMap::new();
        for line in lines.lines() {
            let document: Value = serde_json::from_str(line)?;
            let id = document["id"].as_str().unwrap_or_default().to_owned();
            cities.insert(id, City { document });
        }
        Ok(Self(cities))
    }

    /// Returns the sum of all populations.
    pub fn population(&self) -> i64 {
        self.0.values().map(City::population).sum()
    }

    /// Returns `id, country, population` of each city for which `wanted` is true, ordered by
    /// country and descending population.
    pub fn by_country(&self, wanted: impl Fn(&City) -> bool) -> Vec<[String; 3]> {
        let mut rows: Vec<_> = self.0.iter().filter(|(_, city)| wanted(city)).collect();
        rows.sort_by(|(left_id, left), (right_id, right)| {
            (left.country(), -left.population(), left_id).cmp(&(
                right.country(),
                -right.population(),
                right_id,
            ))
        });
        let row = |(id, city): (&String, &City)| {
            [id.clone(), city.country().to_owned(), city.population().to_string()]
        };
        rows.into_iter().map(row).collect()
    }

    /// Returns `id, name` of each city for which `wanted` is true, ordered by lower-case name,
    /// then country.
    pub fn by_name(&self, wanted: impl Fn(&City) -> bool) -> Vec<[String; 2]> {
        let mut rows: Vec<_> = self.0.iter().filter(|(_, city)| wanted(city)).collect();
        rows.sort_by_cached_key(|(id, city)| {
            (city.name().to_lowercase(), city.country().to_owned(), (*id).clone())
        });
        rows.into_iter().map(|(id, city)| [id.clone(), city.name().to_owned()]).collect()
    }
}
