//! The decision of a rater in the form of `acem3 train introspect --decisions`.

use serde_json::{Map, Value, json};

use super::answers::TaskAnswers;
use super::decision_answer::DecisionAnswer;
use crate::data::labels::ScoreTarget;

impl TaskAnswers {
    /// Returns the decision as `train introspect --decisions` reads it; null if there is none.
    pub fn decision_value(&self, rater: &str) -> Value {
        match &self.decision {
            None => Value::Null,
            Some(DecisionAnswer::Accept(number)) => json!({"by": rater, "accept": number}),
            Some(DecisionAnswer::Own(analyses)) => {
                let mut criteria = Map::new();
                let mut conclusion = Value::Null;
                for (key, analyses) in analyses {
                    let mut rated = json!({"analyses": analyses});
                    if let [Some(first), Some(second)] = [0, 1].map(|i| self.score(key, i)) {
                        rated["scores"] = json!([first, second]);
                    }
                    if key == ScoreTarget::Final.key() {
                        conclusion = rated;
                    } else {
                        criteria.insert(key.clone(), rated);
                    }
                }
                json!({"by": rater, "evaluation": {"criteria": criteria, "final": conclusion}})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_have_the_form_of_the_file() {
        let mut answers = TaskAnswers::default();
        assert_eq!(answers.decision_value("x"), Value::Null);
        answers.decision = Some(DecisionAnswer::Accept(2));
        assert_eq!(answers.decision_value("x"), json!({"by": "x", "accept": 2}));
        let texts = || ["p".to_owned(), "q".to_owned()];
        let keys = ["tone_and_empathy", "final"].map(|key| (key.to_owned(), texts()));
        answers.decision = Some(DecisionAnswer::Own(keys.into()));
        answers.set_score("tone_and_empathy", 0, 2, 3);
        answers.set_score("tone_and_empathy", 1, 2, 4);
        let expected = json!({"by": "x", "evaluation": {
            "criteria": {"tone_and_empathy": {"scores": [3, 4], "analyses": ["p", "q"]}},
            "final": {"analyses": ["p", "q"]},
        }});
        assert_eq!(answers.decision_value("x"), expected);
    }
}
