//! Every question about a phantom scene, with its answer.

use super::claim;
use super::fact::Fact;
use super::question::{Question, QuestionKind, number, phrasings, proposal_texts, proposals};
use super::scene::Scene;

impl Scene {
    /// Every question that can be asked of this scene, in every phrasing and with every proposal,
    /// with its short right answer ("two lesions, left side"; "right side, so no").
    pub fn facts(&self) -> Vec<(Question, String)> {
        let mut all = Vec::new();
        for kind in QuestionKind::ALL.into_iter().filter(|kind| kind.fits(self)) {
            let mut texts: Vec<(Option<Fact>, &str)> = Vec::new();
            match kind {
                QuestionKind::Verify(concern) => {
                    for fact in proposals(concern, self) {
                        texts.extend(proposal_texts(fact).iter().map(|text| (Some(fact), *text)));
                    }
                }
                _ => texts.extend(phrasings(kind).iter().map(|text| (None, *text))),
            }
            for (proposed, text) in texts {
                let question = Question {
                    kind,
                    proposed,
                    text: number(text, self.count()),
                };
                let truth = claim::short(&question, &question.truth(self));
                all.push((question, truth));
            }
        }
        all
    }
}
