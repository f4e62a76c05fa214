//! Compares two verdicts value by value.

use serde::Serialize;
use serde_json::Value;

/// Fields that are not compared if the judge is not reproducible: its texts may differ.
const TEXT_FIELDS: [&str; 3] = ["analyses", "cut", "reproducible"];

/// Fields with probabilities, and what follows from them. Their numbers may differ by the tolerance.
const PROBABILITY_FIELDS: [&str; 4] = ["expected", "spread", "probabilities", "label_mass"];

/// A value that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueDifference {
    /// Path of the value, such as `orders[0].conclusion.scores[1]`.
    pub field: String,
    /// The value in the record.
    pub recorded: Value,
    /// The value of the verdict that was computed again.
    pub again: Value,
    /// Absolute difference of two numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
}

impl ValueDifference {
    /// Returns true if a probability differs, and no score, order or status.
    pub fn is_probability(&self) -> bool {
        is_probability(&self.field)
    }
}

/// Returns true if a path has a field with probabilities.
fn is_probability(path: &str) -> bool {
    let mut names = path.split('.').map(|part| part.split('[').next().unwrap_or_default());
    names.any(|name| PROBABILITY_FIELDS.contains(&name))
}

/// Returns the values that differ. Probabilities and expected scores differ if they are more than
/// `tolerance` apart, other values if they are not equal. With `ignore_texts`, analyses are not compared.
pub fn compare_values(
    recorded: &Value,
    again: &Value,
    tolerance: f64,
    ignore_texts: bool,
) -> Vec<ValueDifference> {
    let mut comparison = ValueComparison { tolerance, ignore_texts, found: Vec::new() };
    comparison.compare("", recorded, again);
    comparison.found
}

/// A comparison in progress.
struct ValueComparison {
    tolerance: f64,
    ignore_texts: bool,
    found: Vec<ValueDifference>,
}

impl ValueComparison {
    fn compare(&mut self, field: &str, recorded: &Value, again: &Value) {
        match (recorded, again) {
            (Value::Object(a), Value::Object(b)) => {
                let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
                names.sort();
                names.dedup();
                for name in names {
                    if self.ignore_texts && TEXT_FIELDS.contains(&name.as_str()) {
                        continue;
                    }
                    let inner =
                        if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                    let value = |fields: &serde_json::Map<String, Value>| {
                        fields.get(name).cloned().unwrap_or_default()
                    };
                    self.compare(&inner, &value(a), &value(b));
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (i, (a, b)) in a.iter().zip(b).enumerate() {
                    self.compare(&format!("{field}[{i}]"), a, b);
                }
            }
            _ => self.compare_single(field, recorded, again),
        }
    }

    fn compare_single(&mut self, field: &str, recorded: &Value, again: &Value) {
        let numbers = recorded.as_f64().zip(again.as_f64());
        let size = numbers.map(|(a, b)| (a - b).abs());
        // Both numbers have four decimals, so a difference of the tolerance may be a little larger.
        let is_close = size.is_some_and(|size| size <= self.tolerance + 1e-9);
        let is_equal = recorded == again || (is_close && is_probability(field));
        if !is_equal {
            self.found.push(ValueDifference {
                field: field.to_owned(),
                recorded: recorded.clone(),
                again: again.clone(),
                size: size.map(|size| (size * 1e4).round() / 1e4),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_have_a_path_and_a_size() {
        let recorded = json!({"order": ">", "scores": [4.0, 1.0], "o": [{"analyses": ["a"], "expected": [0.5]}]});
        let again = json!({"order": "<", "scores": [4.0, 1.5], "o": [{"analyses": ["b"], "expected": [0.52]}]});
        let fields = |tolerance, ignore_texts| -> Vec<(String, Option<f64>)> {
            let found = compare_values(&recorded, &again, tolerance, ignore_texts);
            found.into_iter().map(|d| (d.field, d.size)).collect()
        };
        let named = |name: &str, size| (name.to_owned(), size);
        assert_eq!(
            fields(0.0, false),
            [
                named("o[0].analyses[0]", None),
                named("o[0].expected[0]", Some(0.02)),
                named("order", None),
                named("scores[1]", Some(0.5)),
            ]
        );
        // The tolerance is for probabilities, not for scores.
        for tolerance in [0.02, 5.0] {
            let others = [named("order", None), named("scores[1]", Some(0.5))];
            assert_eq!(fields(tolerance, true), others);
        }
        assert_eq!(compare_values(&recorded, &recorded, 0.0, false), []);
    }
}
