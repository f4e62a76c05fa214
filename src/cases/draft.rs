//! From what a reader found to a case: the rules that are the same for every layout.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::answers::Answers;
use super::case::{Case, Problem, Response};
use super::labels;
use super::source::{Entry, OpenOptions};

/// A case as it stands in its file, before the answers join it.
pub(super) struct Draft {
    /// The case; its responses are those of the file, often none.
    pub(super) case: Case,
    /// What an answers file may call it.
    pub(super) keys: Vec<String>,
    /// The file.
    pub(super) file: Arc<Path>,
}

/// What a reader yields.
pub(super) type Drafts = Box<dyn Iterator<Item = Result<Draft, Problem>> + Send>;

/// Makes cases of drafts.
pub(super) struct Assembly {
    answers: Answers,
    min_responses: usize,
    with_reference: bool,
    /// The line on which an id was first used. Ids are kept as short digests: 16 bytes a case.
    seen: HashMap<[u8; 16], u64>,
    /// How many answers found their case.
    pub(super) attached: u64,
}

impl Assembly {
    /// An assembly that draws on `answers`.
    pub(super) fn new(answers: Answers, options: &OpenOptions) -> Self {
        Self {
            answers,
            min_responses: options.min_responses,
            with_reference: options.with_reference,
            seen: HashMap::new(),
            attached: 0,
        }
    }

    /// How many answers there are.
    pub(super) fn answers(&self) -> u64 {
        self.answers.count()
    }

    /// The case of a draft, or why there is none.
    pub(super) fn finish(&mut self, draft: Draft) -> Entry {
        let Draft {
            mut case,
            keys,
            file,
        } = draft;
        match self.complete(&mut case, &keys) {
            Ok(()) => Ok(case),
            Err(fault) => Err(Problem::parse(&file, case.line, Some(case.id), fault)),
        }
    }

    fn complete(&mut self, case: &mut Case, keys: &[String]) -> Result<(), String> {
        if let Some(first) = self.first_use(case) {
            return Err(format!(
                "the id is used twice: on line {first} and on line {}\nhint: ids must be unique",
                case.line
            ));
        }
        if case.question.trim().is_empty() {
            return Err("the question is empty".into());
        }
        check_own(&case.responses)?;
        self.attached += self.answers.attach(keys, &mut case.responses)? as u64;
        if let Some(labels) = &case.labels {
            labels::check(labels, case.responses.len())?;
        }
        if self.with_reference {
            join_reference(case)?;
        }
        self.check_number(case)
    }

    /// The line on which the case's id was used before.
    fn first_use(&mut self, case: &Case) -> Option<u64> {
        let digest = Sha256::digest(case.id.as_bytes());
        let key = digest.first_chunk::<16>().copied()?;
        let unused = !self.seen.contains_key(&key);
        let first = *self.seen.entry(key).or_insert(case.line);
        (!unused).then_some(first)
    }

    fn check_number(&self, case: &Case) -> Result<(), String> {
        let (n, least) = (case.responses.len(), self.min_responses);
        if n >= least {
            return Ok(());
        }
        let models: Vec<_> = case.responses.iter().map(|r| r.model.as_str()).collect();
        let found = match models.as_slice() {
            [] => "no response".to_owned(),
            [one] => format!("one response (model {one})"),
            many => format!("{n} responses ({})", many.join(", ")),
        };
        let needed = if least == 2 {
            "two".to_owned()
        } else {
            least.to_string()
        };
        let reference = match &case.reference {
            Some(_) if !self.with_reference => ", or --with-reference to judge the reference too",
            _ => "",
        };
        Err(format!(
            "the case has {found}, {needed} or more are needed\n\
             hint: add responses, or answers files of further models with --answers{reference}"
        ))
    }
}

/// Checks the responses that came with the case.
fn check_own(responses: &[Response]) -> Result<(), String> {
    for (index, response) in responses.iter().enumerate() {
        let (number, model) = (index + 1, &response.model);
        if response.text.trim().is_empty() {
            return Err(format!("response {number} (model {model}) is empty"));
        }
        if responses.iter().take(index).any(|r| r.model == *model) {
            return Err(format!(
                "model {model} has two responses, expected one of each model"
            ));
        }
    }
    Ok(())
}

/// Adds the reference as the response of the model `reference`.
fn join_reference(case: &mut Case) -> Result<(), String> {
    const MODEL: &str = "reference";
    let Some(text) = case.reference.clone().filter(|t| !t.trim().is_empty()) else {
        return Ok(());
    };
    if case.responses.iter().any(|r| r.model == MODEL) {
        return Err(format!(
            "a model is named `{MODEL}`, which --with-reference adds"
        ));
    }
    case.responses.push(Response {
        model: MODEL.into(),
        text,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    fn draft(id: &str, line: u64, texts: &[(&str, &str)]) -> Draft {
        let response = |&(model, text): &(&str, &str)| Response {
            model: model.to_owned(),
            text: text.to_owned(),
        };
        let case = Case {
            id: id.into(),
            image: None,
            question: "Is it?".into(),
            responses: texts.iter().map(response).collect(),
            reference: Some("yes".into()),
            labels: None,
            meta: Map::new(),
            extra: Map::new(),
            line,
        };
        Draft {
            case,
            keys: vec![id.into()],
            file: Path::new("cases.jsonl").into(),
        }
    }

    fn assembly(with_reference: bool) -> Assembly {
        let options = OpenOptions {
            with_reference,
            ..OpenOptions::default()
        };
        Assembly::new(Answers::default(), &options)
    }

    #[test]
    fn an_id_is_used_once() {
        let mut assembly = assembly(false);
        let two = [("a", "yes"), ("b", "no")];
        assert!(assembly.finish(draft("x", 3, &two)).is_ok());
        assert!(assembly.finish(draft("y", 4, &two)).is_ok());
        let problem = assembly.finish(draft("x", 9, &two)).unwrap_err();
        assert!(
            problem.message.contains("line 3 and on line 9"),
            "{problem}"
        );
        assert_eq!((problem.line, problem.id.as_deref()), (9, Some("x")));
    }

    #[test]
    fn one_response_is_no_pair_unless_the_reference_joins() {
        let one = [("a", "no")];
        let problem = assembly(false).finish(draft("x", 1, &one)).unwrap_err();
        assert!(problem.message.contains("two or more"), "{problem}");
        assert!(problem.message.contains("--with-reference"), "{problem}");
        let case = assembly(true).finish(draft("x", 1, &one)).unwrap();
        assert_eq!(
            case.responses[1],
            Response {
                model: "reference".into(),
                text: "yes".into()
            }
        );
        let twice = assembly(true)
            .finish(draft("x", 1, &[("reference", "no")]))
            .unwrap_err();
        assert!(twice.message.contains("reference"));
    }

    #[test]
    fn refuses_empty_texts_and_double_models() {
        let mut assembly = assembly(false);
        let empty = assembly
            .finish(draft("x", 1, &[("a", "yes"), ("b", " \n")]))
            .unwrap_err();
        assert!(
            empty.message.contains("response 2 (model b) is empty"),
            "{empty}"
        );
        let double = assembly
            .finish(draft("y", 2, &[("a", "yes"), ("a", "no")]))
            .unwrap_err();
        assert!(double.message.contains("two responses"), "{double}");
        let mut blank = draft("z", 3, &[("a", "yes"), ("b", "no")]);
        blank.case.question = "\t".into();
        assert!(
            assembly
                .finish(blank)
                .unwrap_err()
                .message
                .contains("question is empty")
        );
    }
}
