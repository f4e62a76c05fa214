//! All questions about a phantom scene, with their answers.

use crate::data::phantoms::scene::Scene;
use crate::data::phantoms::text::claim;
use crate::data::phantoms::text::fact::Fact;
use crate::data::phantoms::text::question::{
    Question, QuestionKind, phrasings, pluralize, possible_proposals, proposal_texts,
};

impl Scene {
    /// Returns all questions about this scene, in all phrasings and with all proposals, each with its
    /// short right answer ("two lesions, left side"; "right side, so no").
    pub fn all_questions(&self) -> Vec<(Question, String)> {
        let mut all = Vec::new();
        for kind in QuestionKind::ALL.into_iter().filter(|kind| kind.is_applicable(self)) {
            let mut texts: Vec<(Option<Fact>, &str)> = Vec::new();
            match kind {
                QuestionKind::Verify(concern) => {
                    for fact in possible_proposals(concern, self) {
                        texts.extend(proposal_texts(fact).iter().map(|text| (Some(fact), *text)));
                    }
                }
                _ => texts.extend(phrasings(kind).iter().map(|text| (None, *text))),
            }
            for (proposed, text) in texts {
                let question =
                    Question { kind, proposed, text: pluralize(text, self.lesion_count()) };
                let truth = claim::short_form(&question, &question.correct_facts(self));
                all.push((question, truth));
            }
        }
        all
    }
}
