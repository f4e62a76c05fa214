//! Completes drafts to cases, by the same rules for every layout.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::case::{Case, InputProblem, ProblemScope, Response};
use super::source_options::{CaseResult, SourceOptions};
use crate::data::cases::answers::answer_index::{AnswerIndex, MissingResponse};
use crate::data::cases::answers::answer_matches::AnswerMatchCounts;
use crate::data::cases::case::case_labels;
use crate::data::cases::case::text_limits::{
    check_name_length, check_repeated_fields, check_text_length,
};
use crate::data::cases::draft::Draft;
use crate::data::cases::removed_responses::{
    RemovedResponse, check_responses, join_reasons, remove_responses,
};
use crate::support::text::is_blank;

/// Completes drafts to cases: attaches answers and checks the result.
pub(super) struct CaseAssembler {
    answers: AnswerIndex,
    min_responses: usize,
    with_reference: bool,
    /// Line of the first use of each id. Ids are stored as 16-byte digests.
    first_lines: HashMap<[u8; 16], u64>,
    /// Counts of answers that matched a case.
    pub(super) match_counts: AnswerMatchCounts,
}

impl CaseAssembler {
    /// Creates an assembler that attaches these answers.
    pub(super) fn new(answers: AnswerIndex, options: &SourceOptions) -> Self {
        Self {
            answers,
            min_responses: options.min_responses,
            with_reference: options.with_reference,
            first_lines: HashMap::new(),
            match_counts: AnswerMatchCounts::default(),
        }
    }

    /// Returns the answers that it attaches.
    pub(super) fn answers(&self) -> &AnswerIndex {
        &self.answers
    }

    /// Counts the answers to a question in another language.
    pub(super) fn count_unselected(&mut self, keys: &[String]) {
        self.match_counts.count_unselected(&self.answers, keys);
    }

    /// Counts the answers to an unreadable case.
    pub(super) fn count_unreadable(&mut self, keys: &[String]) {
        self.match_counts.count_unreadable_case(&self.answers, keys);
    }

    /// Returns the models of the answers files.
    pub(super) fn models(&self) -> Vec<String> {
        self.answers.models().to_vec()
    }

    /// Removes and returns the unusable answer lines that match no case.
    pub(super) fn take_unmatched_lines(&mut self) -> Vec<InputProblem> {
        self.answers.unusable_lines().take_remaining()
    }

    /// Completes a draft. Returns the problems of its responses, followed by the case or by a
    /// problem of the whole case.
    pub(super) fn assemble(&mut self, draft: Draft) -> Vec<CaseResult> {
        let Draft { mut case, keys, file, mut field_problems, .. } = draft;
        let mut models: Vec<String> = case.responses.iter().map(|r| r.model.clone()).collect();
        let has_own_responses = !models.is_empty();
        models.retain(|model| !model.trim().is_empty() && check_name_length(model, "").is_ok());
        models.extend(self.models().into_iter().filter(|_| !has_own_responses));
        // A model that is named twice has one response: the problem must not count it twice.
        let mut known = HashSet::new();
        models.retain(|model| known.insert(model.clone()));
        let problem = |case: &Case, message, scope, lacks_responses| InputProblem {
            scope,
            reference: case.reference.as_deref().filter(|_| lacks_responses).map(Box::from),
            ..InputProblem::parse_error(&file, case.line, short_id(case), message)
        };
        let completed = match self.register_id(&case) {
            Some(first) => {
                let message = format!(
                    "the id is used twice: on line {first} and on line {}\nhint: ids must be unique",
                    case.line
                );
                case.id = unique_id(&case, &file);
                Err(message.into())
            }
            None => self.complete(&mut case, &keys, &mut field_problems),
        };
        let ignored_fields = field_problems.into_iter().map(|message| RemovedResponse {
            message,
            scope: ProblemScope::Response { model: None, pairs: Box::default() },
        });
        let (removed, error) = match completed {
            Ok(removed) => (removed, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let entries = ignored_fields.chain(removed).map(|RemovedResponse { message, scope }| {
            let lacks_response = scope.model_without_response().is_some();
            Err(problem(&case, message, scope, lacks_response))
        });
        let duplicates = self.answers.unusable_lines().take_duplicates(&keys);
        let mut entries: Vec<CaseResult> = duplicates.into_iter().map(Err).chain(entries).collect();
        entries.push(match error {
            Some(CaseError { message, lacks_responses }) => {
                Err(problem(&case, message, ProblemScope::Case(models), lacks_responses))
            }
            None => Ok(case),
        });
        entries
    }

    /// Attaches the answers and checks the case. Returns the removed responses, each with the pairs
    /// that cannot be judged without it.
    fn complete(
        &mut self,
        case: &mut Case,
        keys: &[String],
        field_problems: &mut Vec<String>,
    ) -> Result<Vec<RemovedResponse>, CaseError> {
        check_name_length(&case.id, "the id")?;
        self.match_counts.count_case(&self.answers, keys);
        check_text_length(&case.question, "the question")?;
        if let Some(Err(message)) =
            case.reference.as_deref().map(|text| check_text_length(text, "the reference"))
        {
            field_problems.push(format!("{message}; the case is judged without it"));
            case.reference = None;
        }
        if is_blank(&case.question) {
            return Err("the question is empty\nhint: add the question".to_owned().into());
        }
        let mut missing = check_responses(&case.responses)?;
        missing.extend(self.answers.attach(keys, &mut case.responses));
        let labels = case.labels.as_ref();
        let checked = labels
            .map_or(Ok(()), |labels| case_labels::check_score_counts(labels, case.responses.len()));
        if let Err(message) = checked {
            field_problems.push(case_labels::labels_ignored_message(&message));
            case.labels = None;
        }
        if self.with_reference {
            add_reference_response(case)?;
        }
        missing.extend(too_long_responses(&case.responses, &missing)?);
        let removed = remove_responses(case, missing);
        if let Err(message) = check_repeated_fields(case.repeated_bytes(), case.responses.len()) {
            field_problems.push(format!("{message}; the case is judged without them"));
            case.reference = None;
            case.meta.clear();
            case.extra.clear();
        }
        self.check_response_count(case).map_err(|message| CaseError {
            message: if removed.is_empty() { message } else { join_reasons(&removed) },
            lacks_responses: true,
        })?;
        Ok(removed)
    }

    /// Registers the id of a case. Returns the line of an earlier case with the same id.
    fn register_id(&mut self, case: &Case) -> Option<u64> {
        let digest = Sha256::digest(case.id.as_bytes());
        let key = digest.first_chunk::<16>().copied()?;
        let is_first = !self.first_lines.contains_key(&key);
        let first = *self.first_lines.entry(key).or_insert(case.line);
        (!is_first).then_some(first)
    }

    fn check_response_count(&self, case: &Case) -> Result<(), String> {
        let (n, minimum) = (case.responses.len(), self.min_responses);
        if n >= minimum {
            return Ok(());
        }
        let models: Vec<_> = case.responses.iter().map(|r| r.model.as_str()).collect();
        let found = match models.as_slice() {
            [] => "no response".to_owned(),
            [one] => format!("one response (model {one})"),
            many => format!("{n} responses ({})", many.join(", ")),
        };
        let needed = if minimum == 2 { "two".to_owned() } else { minimum.to_string() };
        let reference = match &case.reference {
            Some(_) if !self.with_reference => ", or --with-reference to judge the reference too",
            _ => "",
        };
        Err(format!(
            "the case has {found}, {needed} or more are needed\n\
             hint: add responses, or answers files of further models with --answers{reference}; \
             `acem3 judge --form single` and --form correctness judge responses alone"
        ))
    }
}

/// A problem of a whole case.
struct CaseError {
    message: String,
    /// True if the case has not enough responses.
    lacks_responses: bool,
}

impl From<String> for CaseError {
    fn from(message: String) -> Self {
        Self { message, lacks_responses: false }
    }
}

/// Returns the id of a case whose own id another one has: its records must not look like records of the
/// other case.
fn unique_id(case: &Case, file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    format!("{} ({}:{})", case.id, name.display(), case.line)
}

/// Returns the id of a case for messages; `None` if it is too long for them.
fn short_id(case: &Case) -> Option<String> {
    check_name_length(&case.id, "the id").is_ok().then(|| case.id.clone())
}

/// Returns the responses that are too long, except those that are already missing.
fn too_long_responses(
    responses: &[Response],
    missing: &[MissingResponse],
) -> Result<Vec<MissingResponse>, String> {
    let missing: HashSet<&str> = missing.iter().map(|response| response.model.as_str()).collect();
    let mut too_long = Vec::new();
    for (index, Response { model, text }) in responses.iter().enumerate() {
        let number = index + 1;
        check_name_length(model, &format!("the model of response {number}"))?;
        let name = format!("response {number} (model {model})");
        let is_missing = missing.contains(model.as_str());
        if let (false, Err(message)) = (is_missing, check_text_length(text, &name)) {
            too_long.push(MissingResponse { model: model.clone(), message });
        }
    }
    Ok(too_long)
}

/// Adds the reference as a response of the model `reference`.
fn add_reference_response(case: &mut Case) -> Result<(), String> {
    const MODEL: &str = "reference";
    let Some(text) = case.reference.clone().filter(|t| !is_blank(t)) else {
        return Ok(());
    };
    if case.responses.iter().any(|r| r.model == MODEL) {
        return Err(format!("a model is named `{MODEL}`, which --with-reference adds"));
    }
    case.responses.push(Response { model: MODEL.into(), text });
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
            file: std::path::Path::new("cases.jsonl").into(),
            field_problems: Vec::new(),
            is_selected: true,
        }
    }

    fn assembler(with_reference: bool) -> CaseAssembler {
        let options = SourceOptions { with_reference, ..SourceOptions::default() };
        CaseAssembler::new(AnswerIndex::default(), &options)
    }

    /// Returns the last entry: the case, or the problem of the whole case.
    fn finish(assembly: &mut CaseAssembler, draft: Draft) -> CaseResult {
        assembly.assemble(draft).pop().unwrap()
    }

    #[test]
    fn repeated_id_is_a_problem() {
        let mut assembly = assembler(false);
        let two = [("a", "yes"), ("b", "no")];
        assert!(finish(&mut assembly, draft("x", 3, &two)).is_ok());
        assert!(finish(&mut assembly, draft("y", 4, &two)).is_ok());
        let problem = finish(&mut assembly, draft("x", 9, &two)).unwrap_err();
        assert!(problem.message.contains("line 3 and on line 9"), "{problem}");
        assert_eq!((problem.line, problem.id.as_deref()), (9, Some("x (cases.jsonl:9)")));
    }

    #[test]
    fn one_response_needs_the_reference_to_form_a_pair() {
        let one = [("a", "no")];
        let problem = finish(&mut assembler(false), draft("x", 1, &one)).unwrap_err();
        assert!(problem.message.contains("two or more"), "{problem}");
        assert!(problem.message.contains("--with-reference"), "{problem}");
        let case = finish(&mut assembler(true), draft("x", 1, &one)).unwrap();
        assert_eq!(case.responses[1], Response { model: "reference".into(), text: "yes".into() });
        let twice =
            finish(&mut assembler(true), draft("x", 1, &[("reference", "no")])).unwrap_err();
        assert!(twice.message.contains("reference"));
    }

    #[test]
    fn empty_questions_and_repeated_models_are_problems() {
        let mut assembly = assembler(false);
        let empty =
            finish(&mut assembly, draft("x", 1, &[("a", "yes"), ("b", " \n")])).unwrap_err();
        assert!(empty.message.contains("response 2 (model b) is empty"), "{empty}");
        let double =
            finish(&mut assembly, draft("y", 2, &[("a", "yes"), ("a", "no")])).unwrap_err();
        assert!(double.message.contains("two responses"), "{double}");
        let mut blank = draft("z", 3, &[("a", "yes"), ("b", "no")]);
        blank.case.question = "\t".into();
        assert!(finish(&mut assembly, blank).unwrap_err().message.contains("question is empty"));
    }

    #[test]
    fn empty_response_affects_only_its_pairs() {
        let texts = [("a", "yes"), ("b", ""), ("c", "no"), ("d", " ")];
        let mut draft = draft("x", 5, &texts);
        draft.case.labels = Some(crate::data::cases::CaseLabels {
            final_scores: Some(vec![1.0, 2.0, 3.0, 4.0]),
            ..Default::default()
        });
        let entries = assembler(false).assemble(draft);
        let [Err(b), Err(d), Ok(case)] = entries.as_slice() else { panic!("{entries:?}") };
        let pairs = |p: &InputProblem| {
            p.scope.affected_pairs().iter().map(|p| p.concat()).collect::<Vec<_>>()
        };
        assert_eq!(pairs(b), ["ab", "bc", "bd"]);
        assert_eq!(pairs(d), ["ad", "cd"]);
        assert_eq!((b.line, b.id.as_deref(), b.affects_whole_case()), (5, Some("x"), false));
        assert!(d.message.contains("response 4 (model d) is empty"), "{d}");
        let models: Vec<_> = case.responses.iter().map(|r| r.model.as_str()).collect();
        assert_eq!(models, ["a", "c"]);
        assert_eq!(case.labels.as_ref().unwrap().final_scores, Some(vec![1.0, 3.0]));
    }

    #[test]
    fn unreadable_case_names_its_models() {
        let texts = [("a", "yes"), ("b", "")];
        let problem = finish(&mut assembler(false), draft("x", 1, &texts)).unwrap_err();
        assert!(problem.affects_whole_case());
        assert_eq!(problem.scope.affected_pairs(), [["a".to_owned(), "b".to_owned()]]);
        let unnamed = [("a", "yes"), (" ", "no")];
        let problem = finish(&mut assembler(false), draft("y", 1, &unnamed)).unwrap_err();
        assert!(problem.message.contains("empty `model`"), "{problem}");
    }
}
