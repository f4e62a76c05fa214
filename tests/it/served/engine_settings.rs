//! Settings of the mock of a serving engine.

use std::time::Duration;

use super::constrained_text::WrittenRatings;

/// How the mock behaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineSettings {
    /// The owner of its models: `vllm`, `sglang`, `llamacpp` or another one.
    pub(crate) owner: &'static str,
    /// The names of its models. If there are none, it has one model, `judge`.
    pub(crate) models: &'static [&'static str],
    /// The name of the model in its answers (may be empty); `None` for the requested one.
    pub(crate) answers_as: Option<&'static str>,
    /// The time of an answer.
    pub(crate) delay: Duration,
    /// Percentage of requests that get an error, a closed connection, or a slow or cut answer.
    pub(crate) faults_percent: u64,
    /// What is wrong with it.
    pub(crate) flaws: &'static [EngineFlaw],
    /// True to count the tokens of texts: one per word.
    pub(crate) tokenizes: bool,
    /// The key that requests must have.
    pub(crate) key: Option<&'static str>,
    /// Answer no more requests than this, and ask to wait for an hour.
    pub(crate) quota: Option<u64>,
    /// The number of a request that it asks to repeat after half a minute.
    pub(crate) late: Option<u64>,
    /// Answer requests that contain this text with status 400.
    pub(crate) rejects: Option<&'static str>,
    /// True to repeat the prompt in answers without a constraint, up to `max_tokens` words.
    pub(crate) repeats_prompt: bool,
    /// How often it answers with status 503 before it lists its models.
    pub(crate) busy: u64,
    /// The `Retry-After` of these answers.
    pub(crate) retry_after: Option<&'static str>,
    /// Fixed answers by prompt. Answers to other prompts are made from a hash of the prompt.
    pub(crate) answers: Vec<GivenAnswer>,
}

/// What a model writes if its prompt contains `texts`, in this order.
#[derive(Clone, Debug)]
pub(crate) struct GivenAnswer {
    pub(crate) model: String,
    pub(crate) texts: Vec<String>,
    pub(crate) ratings: WrittenRatings,
}

impl GivenAnswer {
    pub(super) fn is_for(&self, model: &str, prompt: &str) -> bool {
        let mut rest = prompt;
        let mut follows = |text: &String| match rest.find(text.as_str()) {
            Some(start) => {
                rest = &rest[start + text.len()..];
                true
            }
            None => false,
        };
        self.model == model && self.texts.iter().all(&mut follows)
    }
}

/// What a mock does wrong, with status 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineFlaw {
    /// It writes text without regard to the constraint.
    IgnoresConstraint,
    /// It drops images.
    DropsImages,
    /// It returns no probabilities.
    HasNoLogprobs,
    /// It has no page that lists its models.
    ListsNoModels,
    /// Its list of models is empty.
    HasNoModels,
    /// It states no tokens.
    StatesNoTokens,
    /// It states no tokens after the handshake.
    HidesTokensLater,
    /// Its answers name the model `other` after the handshake.
    ChangesModelLater,
    /// It rejects the key after the handshake.
    RejectsKeyLater,
    /// It redirects to another address.
    Redirects,
    /// It obeys the constraint in the handshake only.
    ForgetsConstraint,
    /// It fails after the handshake.
    Fails,
    /// It rejects `max_tokens` and `temperature`, like hosts of models that reason.
    RejectsOptions,
}

impl EngineSettings {
    pub(super) fn has(&self, flaw: EngineFlaw) -> bool {
        self.flaws.contains(&flaw)
    }
}
