//! Errors of this crate.

/// Failure in a prompt, in generation or in training.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tensor operation failed.
    #[error(transparent)]
    Candle(#[from] candle::Error),
    /// The tokenizer could not be read or applied.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The tokenizer has no token for a part of a quoted text.
    #[error(
        "the tokenizer cannot encode a text of the case: {0}\n\
         hint: use a panel whose tokenizer has tokens for all bytes or an unknown token"
    )]
    Unencodable(String),
    /// The rubric is malformed or incomplete.
    #[error("rubric: {0}")]
    Rubric(String),
    /// A prompt template is malformed or does not fit the case.
    #[error("prompt template: {0}")]
    Template(String),
    /// The text of an evaluation does not match its format.
    #[error("the evaluation does not match its format, expected `{0}`")]
    Format(String),
    /// The tokenizer does not encode each score as a single token.
    #[error(
        "the tokenizer does not encode the word at the end of `{0}` as a single token\n\
         hint: use a panel whose tokenizer has the digits 0 to 5 as tokens, for the form correctness \
         also the words no and yes"
    )]
    ScoreTokens(String),
    /// A prompt and its evaluation do not fit into the context of the decoder.
    #[error(
        "the prompt has {prompt} tokens and its evaluation up to {evaluation}, expected at most \
         {context} together\nhint: judge shorter texts or use a panel with a longer context"
    )]
    TooLong {
        /// Number of tokens of the prompt, including image tokens.
        prompt: usize,
        /// Maximum number of tokens of the evaluation.
        evaluation: usize,
        /// Context length of the decoder, in tokens.
        context: usize,
    },
    /// The model computed a logit that is NaN or infinite.
    #[error(
        "the model's logits are not finite\n\
         hint: check the weights, they are damaged or too large for f32"
    )]
    NotFinite,
    /// The prefix cache has no entry for a prompt stage that should be computed already: a bug.
    #[error("the prefix cache has no entry for a prompt stage\nhint: report this bug of acem3")]
    MissingPrefix,
    /// Evidence for a question could not be read.
    #[error("knowledge: {0}")]
    Knowledge(String),
    /// Training failed.
    #[error("training: {0}")]
    Training(String),
}
