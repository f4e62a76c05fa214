//! Questions of a served member: it is asked again with evidence below the prompt, at most T times
//! (Algorithm 1 of AutoMedEval).
//!
//! A server writes an evaluation in one request, so the member writes it anew after each question.
//! What it wrote without the evidence is not shown to it.

use acem3_experts::prompt::{KnowledgePrompt, PromptPiece, QUESTION, QuestionInText};
use acem3_experts::{Lookup, Rating};

use crate::judging::judge::MemberError;
use crate::judging::knowledge::JudgeKnowledge;

/// Characters of evidence for each token that it may have. Servers count tokens, and this process
/// does not know their tokenizer.
const CHARACTERS_PER_TOKEN: usize = 4;

/// The questions of one evaluation so far.
pub(super) struct KnowledgeRounds<'a> {
    knowledge: &'a JudgeKnowledge,
    prompt: KnowledgePrompt,
    /// Index of the rating in which a question was asked, and the question.
    lookups: Vec<(usize, Lookup)>,
}

impl<'a> KnowledgeRounds<'a> {
    /// Starts without questions.
    pub(super) fn new(knowledge: &'a JudgeKnowledge) -> Result<Self, MemberError> {
        let prompt = KnowledgePrompt::built_in();
        let prompt = prompt.map_err(|error| MemberError::Unusable(error.to_string()))?;
        Ok(Self { knowledge, prompt, lookups: Vec::new() })
    }

    /// Returns the evidence for the first new question of an evaluation, to add to the prompt; `None`
    /// if there is none, or if all rounds are used.
    pub(super) fn find_evidence(
        &mut self,
        ratings: &[Rating],
    ) -> Result<Option<Vec<PromptPiece>>, MemberError> {
        if self.lookups.len() >= self.knowledge.settings().rounds {
            return Ok(None);
        }
        let questions = ratings.iter().enumerate().filter_map(|(index, rating)| {
            Some((index, QuestionInText::find(&rating.analysis)?.question))
        });
        // The same question has the same evidence.
        let is_new = |(_, question): &(usize, &str)| {
            !self.lookups.iter().any(|(_, lookup)| lookup.question == *question)
        };
        let Some((index, question)) = { questions }.find(is_new) else {
            return Ok(None);
        };
        let passages = self.knowledge.find(question);
        let passages = passages.map_err(|error| MemberError::Unusable(format!("{error:#}")))?;
        let mut room = self.knowledge.settings().evidence_tokens * CHARACTERS_PER_TOKEN;
        let mut lookup = Lookup { question: question.to_owned(), passages: Vec::new() };
        let mut evidence = String::new();
        for passage in passages {
            if room == 0 {
                break;
            }
            let text: String = passage.text.chars().take(room).collect();
            room -= text.chars().count();
            evidence = format!("{evidence} {text}");
            lookup.passages.push(passage.id);
        }
        if evidence.is_empty() {
            evidence = format!(" {}", self.prompt.nothing_found);
        }
        let pieces = vec![
            PromptPiece::Trusted(format!("{QUESTION}: ")),
            PromptPiece::Quoted(question.to_owned()),
            PromptPiece::Trusted(format!("\n{}", self.prompt.evidence)),
            PromptPiece::Quoted(evidence),
            PromptPiece::Trusted("\n".to_owned()),
        ];
        self.lookups.push((index, lookup));
        Ok(Some(pieces))
    }

    /// Forgets the last question, because the prompt with its evidence is too long.
    pub(super) fn drop_last(&mut self) {
        self.lookups.pop();
    }

    /// Adds the questions to the last evaluation.
    pub(super) fn add_to(self, ratings: &mut [Rating]) {
        for (index, lookup) in self.lookups {
            if let Some(rating) = ratings.get_mut(index) {
                rating.lookups.push(lookup);
            }
        }
    }
}
