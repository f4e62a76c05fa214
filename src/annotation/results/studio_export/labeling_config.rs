//! `label_studio.xml`: the labeling configuration for the tasks of a study.
//!
//! Scores are `Choices`, because they are exact for every score of the rubric. `Rating` has stars from 1
//! and stores no 0. `Number` is a field to type in, and needs a check of its range. Preferences are
//! `Choices` too, because `Pairwise` has no tie.

use std::fmt::Write as _;

use acem3_experts::prompt::RubricCriterion;

use crate::annotation::study::{FINAL_SCORE, Stage, StudyPlan};
use crate::data::labels::ScoreTarget;
use crate::data::labels::label_studio::{
    COMMENT_CONTROL, IMAGE_FIELD, PREFERENCE_CHOICES, PREFERENCE_CONTROL, QUESTION_FIELD,
    RATER_CONTROL, RESPONSE_FIELDS, score_control,
};
use crate::support::text::escape::escape_xml;

/// Names of the responses of a pair.
const PAIR_NAMES: [&str; 2] = ["Answer A", "Answer B"];
/// A row of two columns, and a column.
const ROW_STYLE: &str = "display: flex; gap: 1em";
const COLUMN_STYLE: &str = "flex: 1";

/// Writes the configuration.
pub(in crate::annotation::results) fn write(plan: &StudyPlan) -> String {
    let count = |wanted| plan.tasks.iter().filter(|task| task.responses.len() == wanted).count();
    let mut config = ConfigText {
        xml: String::from("<View>\n"),
        has_images: plan.tasks.iter().any(|task| task.case.image.is_some()),
        has_pairs: count(2) > 0,
        has_singles: count(1) > 0,
        scores: plan.rubric.scores,
    };
    config.add_case(plan);
    if plan.config.has_stage(Stage::Ratings) {
        config.add_scores(plan);
    }
    if plan.config.has_stage(Stage::Preference) && config.has_pairs {
        config.add_preference();
    }
    config.add_header(5, "Comment");
    let _ = writeln!(
        config.xml,
        "  <TextArea name=\"{COMMENT_CONTROL}\" toName=\"{QUESTION_FIELD}\" rows=\"3\" maxSubmissions=\"1\" editable=\"true\"/>"
    );
    // The name of the rater survives import and export in a control that nobody sees.
    let _ = writeln!(
        config.xml,
        "  <View style=\"display: none\"><TextArea name=\"{RATER_CONTROL}\" toName=\"{QUESTION_FIELD}\"/></View>"
    );
    config.xml + "</View>\n"
}

/// The text of a configuration.
struct ConfigText {
    xml: String,
    has_images: bool,
    /// True if a task has two responses.
    has_pairs: bool,
    /// True if a task has one response.
    has_singles: bool,
    /// Lowest and highest score.
    scores: [u8; 2],
}

impl ConfigText {
    /// Adds instructions, image, question and responses.
    fn add_case(&mut self, plan: &StudyPlan) {
        self.add_header(3, &plan.config.name);
        if !plan.config.instructions.is_empty() {
            self.add_header(6, &plan.config.instructions);
        }
        if self.has_images {
            let _ = writeln!(
                self.xml,
                "  <Image name=\"{IMAGE_FIELD}\" value=\"${IMAGE_FIELD}\" zoomControl=\"true\"/>"
            );
        }
        self.add_header(4, "Question");
        let _ = writeln!(self.xml, "  {}", text_field(QUESTION_FIELD));
        let columns = self.response_names().map(|(field, name)| {
            format!("<Header size=\"4\" value=\"{name}\"/>{}", text_field(field))
        });
        let columns: Vec<String> = columns.collect();
        self.add_row(&columns);
    }

    /// Adds the scores of all criteria, and the final score.
    fn add_scores(&mut self, plan: &StudyPlan) {
        for aspect in &plan.rubric.aspects {
            self.add_header(4, &aspect.name);
            for criterion in &aspect.criteria {
                let fitted = criterion.fitted(self.has_images);
                self.add_criterion(&fitted.unwrap_or_else(|_| criterion.clone()));
            }
        }
        self.add_header(4, FINAL_SCORE);
        self.add_choices_of_scores(ScoreTarget::Final.key());
    }

    fn add_criterion(&mut self, criterion: &RubricCriterion) {
        self.add_header(5, &criterion.name);
        self.add_header(6, &criterion.definition);
        self.add_choices_of_scores(criterion.key.key());
    }

    fn add_choices_of_scores(&mut self, target: &str) {
        let [low, high] = self.scores;
        let choices = (low..=high).map(|score| format!("<Choice value=\"{score}\"/>"));
        let choices: String = choices.collect();
        // Label Studio refuses to submit an empty control that is required. The second response is
        // missing in a task with one.
        let is_required = |i: usize| i == 0 || !self.has_singles;
        let columns = self.response_names().enumerate().map(|(i, (field, name))| {
            format!(
                "<Header size=\"6\" value=\"{name}\"/><Choices name=\"{}\" toName=\"{field}\" choice=\"single-radio\" \
                 showInline=\"true\" required=\"{}\">{choices}</Choices>",
                score_control(target, i),
                is_required(i)
            )
        });
        let columns: Vec<String> = columns.collect();
        self.add_row(&columns);
    }

    fn add_preference(&mut self) {
        self.add_header(4, "Which answer is better?");
        let choices = PREFERENCE_CHOICES.map(|choice| format!("<Choice value=\"{choice}\"/>"));
        let _ = writeln!(
            self.xml,
            "  <Choices name=\"{PREFERENCE_CONTROL}\" toName=\"{QUESTION_FIELD}\" choice=\"single-radio\" \
             showInline=\"true\" required=\"{}\">{}</Choices>",
            !self.has_singles,
            choices.concat()
        );
    }

    /// Returns the fields of the responses with the names that raters see.
    fn response_names(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let (count, names) = if self.has_pairs { (2, PAIR_NAMES) } else { (1, ["Answer"; 2]) };
        RESPONSE_FIELDS.into_iter().zip(names).take(count)
    }

    fn add_header(&mut self, size: u8, text: &str) {
        let _ = writeln!(self.xml, "  <Header size=\"{size}\" value=\"{}\"/>", header_text(text));
    }

    fn add_row(&mut self, columns: &[String]) {
        let columns = columns
            .iter()
            .map(|column| format!("    <View style=\"{COLUMN_STYLE}\">{column}</View>\n"));
        let columns: String = columns.collect();
        let _ = write!(self.xml, "  <View style=\"{ROW_STYLE}\">\n{columns}  </View>\n");
    }
}

/// Returns the element of a text of the task.
fn text_field(field: &str) -> String {
    format!("<Text name=\"{field}\" value=\"${field}\"/>")
}

/// Escapes a text of the study. Label Studio replaces `$name` by a field of the task, so the dollar sign
/// becomes its full-width form.
fn header_text(text: &str) -> String {
    escape_xml(&text.replace('$', "\u{ff04}"))
}
