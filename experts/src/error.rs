//! What can go wrong in this crate.

/// An error of the experts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tensor operation failed.
    #[error(transparent)]
    Candle(#[from] candle::Error),
    /// The tokenizer could not be read or applied.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The rubric is not what it should be.
    #[error("rubric: {0}")]
    Rubric(String),
    /// A prompt template is not what it should be.
    #[error("prompt template: {0}")]
    Template(String),
    /// An evaluation departs from its form.
    #[error("the evaluation does not keep to its form, which has `{0}` next")]
    Form(String),
    /// The tokenizer does not write the scores as single tokens.
    #[error("the scores 0 to 5 are not single tokens at `{0}`")]
    ScoreTokens(String),
    /// A prompt and its answer do not fit into the model's context.
    #[error(
        "the prompt takes {prompt} tokens and its evaluation up to {answer}, the context holds {context}\n\
         hint: judge shorter texts, or take a panel with a longer context"
    )]
    TooLong {
        /// Tokens of the prompt, image tokens included.
        prompt: usize,
        /// Most tokens the evaluation can take.
        answer: usize,
        /// Tokens of the context.
        context: usize,
    },
    /// The model computed something that is not a number.
    #[error(
        "the model's logits are not finite\nhint: its weights are damaged or too large for f32"
    )]
    NotFinite,
    /// A stage of a prompt that must have been computed was not: a fault of this program.
    #[error(
        "a stage of a prompt was not computed\nhint: this is a fault of acem3; please report it"
    )]
    Unknown,
    /// Training cannot go on.
    #[error("training: {0}")]
    Training(String),
}
