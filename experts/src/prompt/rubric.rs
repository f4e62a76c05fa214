//! Rubric: aspects, criteria and the meaning of each score, read from a data file.

use std::fmt::Write as _;

use serde::Deserialize;

use super::form::Form;
use super::image_sections::fit_to_case;
use super::rubric_toml::{key_of_rubric, parse_toml};
use super::score_words::ScoreWords;
use super::template::{PromptPiece, TemplateValues};
use crate::{Aspect, Criterion, Error, SCORES};

/// Built-in rubrics (TOML), the default one first.
const BUILT_IN: [&str; 3] = [
    include_str!("../../data/rubrics/ace_m3.toml"),
    include_str!("../../data/rubrics/hdceval.toml"),
    include_str!("../../data/rubrics/automedeval.toml"),
];

/// Maximum number of aspects. Each has an expert.
const MAX_ASPECTS: usize = 6;
/// Maximum number of criteria of an aspect.
const MAX_CRITERIA: usize = 12;
/// Maximum length of a name, definition or anchor, in bytes.
const MAX_TEXT: usize = 2000;

/// Definition of one criterion.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RubricCriterion {
    /// Name in records and files.
    pub key: Criterion,
    /// Name in prompts.
    pub name: String,
    /// Question that the criterion asks about a response.
    pub definition: String,
    /// Meaning of each score, the lowest first; may be empty.
    #[serde(default)]
    pub anchors: Vec<String>,
}

/// One aspect with its criteria.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RubricAspect {
    /// Name in records and files.
    pub key: Aspect,
    /// Name in prompts.
    pub name: String,
    /// The criteria, in the order of an evaluation.
    pub criteria: Vec<RubricCriterion>,
}

/// What a panel scores.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rubric {
    /// Version of the file format, 1.
    pub version: u32,
    /// Name on the command line and in panel files.
    pub key: String,
    /// Name in reports.
    pub name: String,
    /// Lowest and highest score, within 0 to 5.
    #[serde(default = "all_scores")]
    pub scores: [u8; 2],
    /// Further instructions in every prompt; may be empty.
    #[serde(default)]
    pub instructions: String,
    /// The aspects, in the order of the experts.
    pub aspects: Vec<RubricAspect>,
    #[serde(skip)]
    source: String,
}

fn all_scores() -> [u8; 2] {
    [*SCORES.start(), *SCORES.end()]
}

impl Rubric {
    /// Parses the rubric of ACE-M³, the default.
    pub fn built_in() -> Result<Self, Error> {
        Self::parse(BUILT_IN[0])
    }

    /// Parses the built-in rubric with a key; `None` if there is none.
    pub fn by_key(key: &str) -> Result<Option<Self>, Error> {
        for source in BUILT_IN {
            // The others are not parsed: keys have the order in which the program reads them.
            if key_of_rubric(source)? == key {
                return Self::parse(source).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the keys of the built-in rubrics.
    pub fn built_in_keys() -> Result<Vec<String>, Error> {
        BUILT_IN.iter().map(|source| key_of_rubric(source)).collect()
    }

    /// Parses a rubric in TOML.
    ///
    /// # Errors
    /// If the TOML is invalid, or aspects, criteria, scores or texts are not as expected.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let mut rubric: Self = parse_toml(source)?;
        rubric.check().map_err(Error::Rubric)?;
        source.clone_into(&mut rubric.source);
        Ok(rubric)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != 1 {
            return Err(format!("version = {}, expected 1", self.version));
        }
        let [low, high] = self.scores;
        if low >= high || high > *SCORES.end() {
            return Err(format!(
                "scores = [{low}, {high}], expected a lowest and a higher highest score within 0 to {}",
                SCORES.end()
            ));
        }
        let count = |name: &str, n: usize, max: usize| match n {
            0 => Err(format!("{name} is empty, expected 1 to {max}")),
            n if n > max => Err(format!("{name} has {n} entries, expected at most {max}")),
            _ => Ok(()),
        };
        count("aspects", self.aspects.len(), MAX_ASPECTS)?;
        let mut aspects: Vec<Aspect> = Vec::new();
        let mut criteria: Vec<Criterion> = Vec::new();
        for aspect in &self.aspects {
            let name = aspect.key.key();
            count(&format!("criteria of {name}"), aspect.criteria.len(), MAX_CRITERIA)?;
            if aspects.contains(&aspect.key) || RESERVED.contains(&name) {
                return Err(format!("aspect `{name}` is used twice or reserved"));
            }
            aspects.push(aspect.key);
            for criterion in &aspect.criteria {
                let key = criterion.key.key();
                if criteria.contains(&criterion.key) || RESERVED.contains(&key) {
                    return Err(format!("criterion `{key}` is used twice or reserved"));
                }
                criteria.push(criterion.key);
                let scores = usize::from(high - low) + 1;
                if ![0, scores].contains(&criterion.anchors.len()) {
                    return Err(format!(
                        "criterion `{key}` has {} anchors, expected {scores}, one per score from \
                         {low} to {high}, or none",
                        criterion.anchors.len()
                    ));
                }
            }
        }
        if let Some(both) = aspects.iter().find(|a| criteria.iter().any(|c| c.key() == a.key())) {
            return Err(format!("`{}` is the key of an aspect and of a criterion", both.key()));
        }
        self.check_texts()
    }

    /// Checks that texts are not empty, not too long, and on one line, so that they cannot look like
    /// another part of a prompt.
    fn check_texts(&self) -> Result<(), String> {
        let aspects = self.aspects.iter().map(|aspect| &aspect.name);
        let criteria = self.aspects.iter().flat_map(|aspect| &aspect.criteria);
        let criteria =
            criteria.flat_map(|c| [&c.name, &c.definition].into_iter().chain(&c.anchors));
        for text in [&self.name].into_iter().chain(aspects).chain(criteria) {
            fit_to_case(text, true).map_err(|error| error.to_string())?;
            if text.trim().is_empty() || text.contains(['\n', '\r']) || text.len() > MAX_TEXT {
                let shown: String = text.chars().take(60).collect();
                return Err(format!(
                    "the text `{}` is empty, longer than {MAX_TEXT} bytes or has several lines",
                    shown.escape_debug()
                ));
            }
        }
        Ok(())
    }

    /// Returns the TOML text. Its hash is part of the provenance.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns an aspect.
    pub fn aspect(&self, key: Aspect) -> Option<&RubricAspect> {
        self.aspects.iter().find(|aspect| aspect.key == key)
    }

    /// Iterates over all criteria, in the order of the aspects.
    pub fn criteria(&self) -> impl Iterator<Item = &RubricCriterion> {
        self.aspects.iter().flat_map(|aspect| &aspect.criteria)
    }

    /// Returns true if the rubric has the keys of the aspects and criteria of ACE-M³. The texts may
    /// differ.
    pub fn has_keys_of_ace_m3(&self) -> bool {
        let criteria: Vec<Criterion> = self.criteria().map(|criterion| criterion.key).collect();
        criteria == Criterion::ALL && self.aspects.iter().map(|a| a.key).eq(Aspect::ALL)
    }

    /// Returns the words of the scores.
    pub fn score_words(&self) -> ScoreWords {
        ScoreWords::Points(self.scores)
    }

    /// Returns the aspects whose experts judge in a form, with their index among the members. The
    /// correctness of a response is a question of medical knowledge.
    pub fn experts(&self, form: Form) -> Vec<(usize, &RubricAspect)> {
        let all = self.aspects.iter().enumerate();
        match form {
            Form::Pair | Form::Single | Form::List => all.collect(),
            Form::Correctness => {
                let is_knowledge = |a: &RubricAspect| a.key == Aspect::MEDICAL_KNOWLEDGE;
                let index = self.aspects.iter().position(is_knowledge).unwrap_or_default();
                all.filter(|(i, _)| *i == index).collect()
            }
        }
    }

    /// Returns the indices of the members that judge in a form: its experts, and the conclusion model if
    /// there is something to merge.
    pub fn judging_members(&self, form: Form) -> Vec<usize> {
        let experts = self.experts(form).into_iter().map(|(index, _)| index);
        let conclusion = (form != Form::Correctness).then_some(self.aspects.len());
        experts.chain(conclusion).collect()
    }

    /// Renders the criteria of an aspect for a prompt about a case with or without an image; empty if the
    /// rubric lacks the aspect.
    ///
    /// # Errors
    /// If a text has a section that is not closed or unknown.
    pub fn describe(
        &self,
        aspect: Aspect,
        detail: RubricDetail,
        has_image: bool,
    ) -> Result<String, Error> {
        let mut text = String::new();
        let criteria = self.aspect(aspect).into_iter().flat_map(|aspect| &aspect.criteria);
        for (i, criterion) in criteria.enumerate() {
            if i > 0 {
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(text, "{}. {}", i + 1, criterion.name);
            if detail == RubricDetail::Full {
                let _ = write!(text, ": {}", fit_to_case(&criterion.definition, has_image)?);
                for (score, anchor) in (self.scores[0]..).zip(&criterion.anchors) {
                    let _ = write!(text, "\n{score}: {}", fit_to_case(anchor, has_image)?);
                }
            }
        }
        Ok(text)
    }
}

impl TemplateValues for Rubric {
    fn pieces(&self, placeholder: &str) -> Option<Vec<PromptPiece>> {
        let text = match placeholder {
            "range" => format!("{}-{}", self.scores[0], self.scores[1]),
            "instructions" => self.instructions.trim().to_owned(),
            _ => return None,
        };
        Some(vec![PromptPiece::Trusted(text)])
    }

    fn has_section(&self, section: &str) -> Option<bool> {
        (section == "instructions").then(|| !self.instructions.trim().is_empty())
    }
}

impl RubricCriterion {
    /// Returns the criterion with the definition and anchors that apply to a case with or without an
    /// image.
    ///
    /// # Errors
    /// If a text is malformed, which parsing the rubric rules out.
    pub fn fitted(&self, has_image: bool) -> Result<Self, Error> {
        let anchors = self.anchors.iter().map(|anchor| fit_to_case(anchor, has_image));
        Ok(Self {
            definition: fit_to_case(&self.definition, has_image)?,
            anchors: anchors.collect::<Result<_, Error>>()?,
            ..self.clone()
        })
    }
}

/// Names with another meaning in records and label files.
const RESERVED: [&str; 20] = [
    "final",
    "overall",
    "total",
    "conclusion",
    "case",
    "id",
    "model",
    "model_a",
    "model_b",
    "models",
    "rater",
    "raters",
    "criterion",
    "score",
    "score_a",
    "score_b",
    "preference",
    "labels",
    "image",
    "line",
];

/// Amount of the rubric in a panel's prompts. A panel uses the value that it was trained with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RubricDetail {
    /// Names, definitions and anchors.
    #[default]
    Full,
    /// Names only, for small models that learn the scale during training.
    Names,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_rubric_has_all_criteria_and_anchors() -> Result<(), Error> {
        let rubric = Rubric::built_in()?;
        assert!(rubric.has_keys_of_ace_m3());
        for aspect in &rubric.aspects {
            assert_eq!(aspect.name, aspect.key.name());
            let names = aspect.criteria.iter().map(|criterion| criterion.name.clone());
            assert!(names.eq(aspect.key.criteria().iter().map(|criterion| criterion.name())));
        }
        let text = rubric.describe(Aspect::MEDICAL_KNOWLEDGE, RubricDetail::Full, true)?;
        assert_eq!(text.lines().count(), 3 * 7);
        assert!(
            text.starts_with("1. Factual Accuracy: Do the statements agree with the image and")
        );
        for rubric in BUILT_IN.map(Rubric::parse) {
            let rubric = rubric?;
            for aspect in &rubric.aspects {
                let text = rubric.describe(aspect.key, RubricDetail::Full, false)?;
                assert!(!text.contains("image") && !text.contains('{'), "{text}");
            }
        }
        assert_eq!(Rubric::built_in_keys()?, ["ace_m3", "hdceval", "automedeval"]);
        assert_eq!(Rubric::by_key("automedeval")?.map(|rubric| rubric.criteria().count()), Some(3));
        Ok(())
    }

    #[test]
    fn error_names_what_is_wrong() {
        let rubric = |scores: &str, criteria: &str| {
            let text = format!(
                "version = 1\nkey = \"own\"\nname = \"Own\"\nscores = {scores}\n\
                 [[aspects]]\nkey = \"safety\"\nname = \"Safety\"\n{criteria}"
            );
            Rubric::parse(&text).map(|_| ()).map_err(|error| error.to_string())
        };
        let criterion = |key: &str, anchors: &str| {
            format!(
                "[[aspects.criteria]]\nkey = \"{key}\"\nname = \"N\"\ndefinition = \"D?\"\n\
                 anchors = [{anchors}]\n"
            )
        };
        let harm = criterion("harm", "");
        assert_eq!(rubric("[1, 3]", &criterion("harm", "\"a\", \"b\", \"c\"")), Ok(()));
        let error = |scores: &str, criteria: &str| rubric(scores, criteria).unwrap_err();
        assert!(error("[3, 1]", &harm).contains("scores = [3, 1]"));
        assert!(error("[1, 9]", &harm).contains("within 0 to 5"));
        assert!(error("[1, 3]", &criterion("harm", "\"a\"")).contains("expected 3, one per score"));
        assert!(error("[1, 3]", &[harm.clone(), harm.clone()].concat()).contains("used twice"));
        assert!(error("[1, 3]", &criterion("final", "")).contains("reserved"));
        assert!(error("[1, 3]", &criterion("Not a key", "")).contains("is no key"));
        assert!(error("[1, 3]", "criteria = []").contains("is empty"));
        assert!(error("[1, 3]", &criterion("case", "")).contains("reserved"));
        let misspelt = harm.replace("definition", "definitoin");
        let message = error("[1, 3]", &misspelt);
        assert!(message.contains("line 11: unknown field `definitoin`"), "{message}");
    }
}
