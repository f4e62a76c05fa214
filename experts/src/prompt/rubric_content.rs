//! The content of a rubric: all that reaches prompts and verdicts.

use std::fmt::Write as _;

use super::rubric::{Rubric, RubricAspect, RubricCriterion};

impl Rubric {
    /// Returns what reaches prompts and verdicts as canonical text: score range, instructions,
    /// aspects and criteria with names, definitions and anchors. Comments, layout, key and name of
    /// the rubric are left out.
    pub fn content(&self) -> String {
        let mut text = format!("{:?}\n{:?}\n", self.scores, self.instructions.trim());
        for RubricAspect { key, name, criteria } in &self.aspects {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {name:?}", key.key());
            for RubricCriterion { key, name, definition, anchors } in criteria {
                let _ = writeln!(text, "{} {name:?} {definition:?} {anchors:?}", key.key());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn content_covers_all_texts_of_prompts() -> Result<(), Error> {
        let rubric = Rubric::built_in()?;
        let changed = |from: &str, to: &str| {
            assert!(rubric.source().contains(from), "{from}");
            Ok::<_, Error>(Rubric::parse(&rubric.source().replacen(from, to, 1))?.content())
        };
        for (from, to) in [
            ("Is the response easy to follow?", "Is it long?"),
            ("cannot be understood", "is wrong"),
            ("name = \"Expression\"", "name = \"Style\""),
            ("scores = [0, 5]", "scores = [0, 5]\ninstructions = \"Be strict.\""),
        ] {
            assert_ne!(changed(from, to)?, rubric.content(), "{from}");
        }
        assert_eq!(changed("# The ten criteria", "# Ten criteria")?, rubric.content());
        Ok(())
    }
}
