//! Evaluations without the questions that a member asked and the evidence that it read.

use acem3_experts::prompt::{CompletionPart, KnowledgePrompt, PromptPiece, QUESTION};
use anyhow::Result;

use super::evaluations_file::EvaluationExample;

/// Returns true if a member asked a question in the evaluation and read evidence for it.
///
/// # Errors
/// If the texts of the program are damaged.
pub(crate) fn has_questions(evaluation: &EvaluationExample) -> Result<bool> {
    Ok(KnowledgePrompt::built_in()?.split_completion(&evaluation.text).len() > 1)
}

/// Removes the questions with their evidence from an evaluation, and the sentence of the prompt that
/// the member may ask. The analysis continues without them.
///
/// # Errors
/// If the texts of the program are damaged.
pub(crate) fn remove_questions(evaluation: &mut EvaluationExample) -> Result<()> {
    evaluation.text = without_questions(&evaluation.text)?;
    remove_offer(&mut evaluation.prompt)
}

/// Returns the text of an evaluation without its questions and their evidence.
///
/// # Errors
/// If the texts of the program are damaged.
pub(crate) fn without_questions(evaluation: &str) -> Result<String> {
    let prompt = KnowledgePrompt::built_in()?;
    let parts = prompt.split_completion(evaluation);
    let mut text = String::new();
    for (i, part) in parts.iter().enumerate() {
        let CompletionPart::Written(written) = part else {
            continue;
        };
        let is_followed = matches!(parts.get(i + 1), Some(CompletionPart::Evidence(_)));
        let mark = written.to_ascii_lowercase().rfind(&QUESTION.to_ascii_lowercase());
        match mark.and_then(|start| written.get(..start)).filter(|_| is_followed) {
            Some(before) => text.push_str(before.trim_end_matches(' ')),
            None => text.push_str(written),
        }
    }
    Ok(text)
}

/// Returns the text of a prompt without the sentence that the member may ask.
///
/// # Errors
/// If the texts of the program are damaged.
pub(crate) fn without_offer(prompt: &str) -> Result<String> {
    Ok(prompt.replacen(&format!("{}\n", KnowledgePrompt::built_in()?.instruction), "", 1))
}

/// Removes the sentence that the member may ask from a prompt.
///
/// # Errors
/// If the texts of the program are damaged.
pub(crate) fn remove_offer(prompt: &mut [PromptPiece]) -> Result<()> {
    for piece in prompt {
        if let PromptPiece::Trusted(text) = piece {
            *text = without_offer(text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analysis_continues_without_the_question() {
        let prompt = KnowledgePrompt::built_in().unwrap();
        let evidence = prompt.render_evidence("A cyst is a sac.");
        let asking = |analysis: &str| EvaluationExample {
            line: 1,
            member: None,
            prompt: vec![PromptPiece::Trusted(format!(
                "### Instruction:\n{}\nJudge.",
                prompt.instruction
            ))],
            text: format!("Response 1:\nAnalysis:{analysis}\nScore: 4"),
            image: None,
            quality: None,
        };
        let question = format!("[Question]: what is a cyst?\n{evidence}");
        for (analysis, expected) in [
            (format!(" Fine. {question} It is right."), " Fine. It is right."),
            (format!(" {question} It is right."), " It is right."),
            (format!(" A. {question} B. {question} C."), " A. B. C."),
            (" No question.".to_owned(), " No question."),
        ] {
            let mut evaluation = asking(&analysis);
            assert_eq!(has_questions(&evaluation).unwrap(), analysis.contains(QUESTION));
            remove_questions(&mut evaluation).unwrap();
            assert_eq!(evaluation.text, format!("Response 1:\nAnalysis:{expected}\nScore: 4"));
            let prompt = PromptPiece::Trusted("### Instruction:\nJudge.".to_owned());
            assert_eq!(evaluation.prompt, [prompt]);
        }
    }
}
