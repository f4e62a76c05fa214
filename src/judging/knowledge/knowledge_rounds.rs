//! Questions of a served model: it is asked again with evidence below the prompt, at most T times
//! (Algorithm 1 of AutoMedEval).
//!
//! A server writes an evaluation in one request, so the model writes it anew after each question.
//! What it wrote without the evidence is not shown to it.

use acem3_experts::prompt::{KnowledgePrompt, PromptPiece, QUESTION, QuestionInText};
use acem3_experts::{Lookup, Rating};
use anyhow::Result;

use super::judge_knowledge::{EvidenceText, JudgeKnowledge};

/// The questions of one evaluation so far.
pub struct KnowledgeRounds<'a> {
    knowledge: &'a JudgeKnowledge,
    prompt: KnowledgePrompt,
    /// Index of the rating in which a question was asked, and the question.
    lookups: Vec<(usize, Lookup)>,
}

impl<'a> KnowledgeRounds<'a> {
    /// Starts without questions.
    ///
    /// # Errors
    ///
    /// The texts around evidence are damaged.
    pub fn new(knowledge: &'a JudgeKnowledge) -> Result<Self> {
        Ok(Self { knowledge, prompt: KnowledgePrompt::built_in()?, lookups: Vec::new() })
    }

    /// Returns the evidence for the first new question of an evaluation, to add to the prompt; `None`
    /// if there is none, or if all rounds are used. `texts`: the text of each rating.
    ///
    /// # Errors
    ///
    /// The index cannot be read.
    pub fn find_evidence(&mut self, texts: &[&str]) -> Result<Option<Vec<PromptPiece>>> {
        if self.lookups.len() >= self.knowledge.settings().rounds {
            return Ok(None);
        }
        let questions = texts
            .iter()
            .enumerate()
            .filter_map(|(index, text)| Some((index, QuestionInText::find(text)?.question)));
        // The same question has the same evidence.
        let is_new = |(_, question): &(usize, &str)| {
            !self.lookups.iter().any(|(_, lookup)| lookup.question == *question)
        };
        let Some((index, question)) = { questions }.find(is_new) else {
            return Ok(None);
        };
        let EvidenceText { ids, mut text } = self.knowledge.find_text(question)?;
        if text.is_empty() {
            text.clone_from(&self.prompt.nothing_found);
        }
        // The model writes its analysis anew, after the question and the evidence.
        let lookup = Lookup { question: question.to_owned(), passages: ids, position: 0 };
        let pieces = vec![
            PromptPiece::Trusted(format!("{QUESTION}: ")),
            PromptPiece::Quoted(question.to_owned()),
            PromptPiece::Trusted(format!("\n{}", self.prompt.evidence)),
            PromptPiece::Quoted(format!(" {text}")),
            PromptPiece::Trusted("\n".to_owned()),
        ];
        self.lookups.push((index, lookup));
        Ok(Some(pieces))
    }

    /// Forgets the last question, because the prompt with its evidence is too long.
    pub fn drop_last(&mut self) {
        self.lookups.pop();
    }

    /// Adds the questions to the last evaluation. A question after the last rating counts for it.
    pub fn add_to(self, ratings: &mut [Rating]) {
        let last = ratings.len().saturating_sub(1);
        for (index, lookup) in self.lookups {
            if let Some(rating) = ratings.get_mut(index.min(last)) {
                rating.lookups.push(lookup);
            }
        }
    }
}
