//! The reply of a server to a request for an evaluation.

use std::borrow::Cow;

use serde::Deserialize;

/// A token with its alternatives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::judging::served) struct ReplyToken {
    /// The text of the token, in bytes: a token can be a part of a character.
    pub(in crate::judging::served) text: Vec<u8>,
    /// Alternatives, the token itself among them: text and logarithm of the probability.
    pub(in crate::judging::served) alternatives: Vec<(Vec<u8>, f32)>,
}

/// What a server wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::judging::served) struct Reply {
    /// The text.
    pub(in crate::judging::served) text: String,
    /// Why the model stopped; `length` if the text is not complete.
    pub(in crate::judging::served) finish_reason: String,
    /// Why the model did not answer.
    pub(in crate::judging::served) refusal: Option<String>,
    /// The tokens; empty if the server returned none.
    pub(in crate::judging::served) tokens: Vec<ReplyToken>,
    /// The number of tokens of the prompt, image tokens included.
    pub(in crate::judging::served) prompt_tokens: Option<u64>,
    /// The number of written tokens.
    pub(in crate::judging::served) written_tokens: Option<u64>,
    /// What the server says about its version.
    pub(in crate::judging::served) fingerprint: Option<String>,
    /// The name of the model that answered.
    pub(in crate::judging::served) model: Option<String>,
}

impl Reply {
    /// Parses the body of a response with status 200.
    ///
    /// # Errors
    ///
    /// The body is not JSON, for example because it was cut, or has no message.
    pub(in crate::judging::served) fn parse(body: &[u8]) -> Result<Self, String> {
        let body: CompletionBody =
            serde_json::from_slice(body).map_err(|error| format!("not a completion: {error}"))?;
        let choice = body.choices.into_iter().next();
        let choice = choice.ok_or("the response has no `choices[0]`")?;
        let tokens = choice.logprobs.map(|logprobs| logprobs.content.0).unwrap_or_default();
        let usage = body.usage.unwrap_or_default();
        Ok(Self {
            text: choice.message.content.unwrap_or_default(),
            finish_reason: choice.finish_reason.unwrap_or_default(),
            refusal: choice.message.refusal,
            tokens: tokens.into_iter().map(TokenBody::into_token).collect(),
            prompt_tokens: usage.prompt_tokens,
            written_tokens: usage.completion_tokens,
            fingerprint: body.system_fingerprint,
            model: body.model.filter(|name| !name.is_empty()),
        })
    }

    /// Returns true if the server states how many tokens it read and wrote.
    pub(in crate::judging::served) fn states_tokens(&self) -> bool {
        self.prompt_tokens.is_some() && self.written_tokens.is_some()
    }

    /// Returns the text of the tokens, in bytes, without the token that ends it.
    pub(in crate::judging::served) fn visible_token_bytes(&self) -> Vec<u8> {
        let is_end = |token: &ReplyToken| {
            let text = String::from_utf8_lossy(&token.text);
            !text.is_empty() && !self.text.ends_with(text.as_ref())
        };
        let visible = match self.tokens.split_last() {
            Some((last, others)) if is_end(last) => others,
            _ => &self.tokens,
        };
        visible.iter().flat_map(|token| token.text.iter().copied()).collect()
    }
}

#[derive(Deserialize)]
struct CompletionBody<'a> {
    #[serde(borrow)]
    choices: Vec<ChoiceBody<'a>>,
    usage: Option<UsageBody>,
    system_fingerprint: Option<String>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceBody<'a> {
    message: MessageBody,
    finish_reason: Option<String>,
    #[serde(borrow, default)]
    logprobs: Option<LogprobsBody<'a>>,
}

#[derive(Deserialize)]
struct MessageBody {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct UsageBody {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct LogprobsBody<'a> {
    #[serde(borrow, default)]
    content: TokenList<'a>,
}

/// Tokens; empty in other notations, such as the older one of completions.
#[derive(Default, Deserialize)]
#[serde(from = "Option<Vec<TokenBody<'a>>>")]
struct TokenList<'a>(#[serde(borrow)] Vec<TokenBody<'a>>);

impl<'a> From<Option<Vec<TokenBody<'a>>>> for TokenList<'a> {
    fn from(tokens: Option<Vec<TokenBody<'a>>>) -> Self {
        Self(tokens.unwrap_or_default())
    }
}

/// A token, or an alternative to one, which has no alternatives itself.
#[derive(Deserialize)]
struct TokenBody<'a> {
    #[serde(borrow)]
    token: Cow<'a, str>,
    bytes: Option<Vec<u8>>,
    /// `None` if the server does not state it.
    logprob: Option<f32>,
    #[serde(borrow, default)]
    top_logprobs: Option<Vec<TokenBody<'a>>>,
}

impl TokenBody<'_> {
    fn into_token(self) -> ReplyToken {
        let text = to_bytes(&self.token, self.bytes);
        let alternatives = self.top_logprobs.into_iter().flatten();
        let alternatives = alternatives
            .filter_map(|other| Some((to_bytes(&other.token, other.bytes), other.logprob?)));
        let mut alternatives: Vec<_> = alternatives.collect();
        if let Some(logprob) = self.logprob
            && !alternatives.iter().any(|(other, _)| *other == text)
        {
            alternatives.push((text.clone(), logprob));
        }
        ReplyToken { text, alternatives }
    }
}

/// Returns the bytes of a token. Some servers give none.
fn to_bytes(token: &str, bytes: Option<Vec<u8>>) -> Vec<u8> {
    bytes.filter(|bytes| !bytes.is_empty()).unwrap_or_else(|| token.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_has_text_tokens_and_counts() {
        let body = br#"{"choices":[{"finish_reason":"stop","message":{"content":"a 4"},"logprobs":{"content":[
            {"token":"a","bytes":[97],"logprob":-0.1,"top_logprobs":[]},
            {"token":" \u0034","bytes":null,"logprob":-0.5,"top_logprobs":[{"token":" 4","bytes":null,"logprob":-0.5},
             {"token":" 5","bytes":[32,53],"logprob":-1.5}]}]}}],
            "usage":{"prompt_tokens":59},"system_fingerprint":"v1"}"#;
        let reply = Reply::parse(body).unwrap();
        assert_eq!(reply.text.as_bytes(), reply.visible_token_bytes());
        assert_eq!(reply.prompt_tokens, Some(59));
        assert_eq!(reply.tokens[0].alternatives, [(b"a".to_vec(), -0.1)]);
        assert_eq!(reply.tokens[1].alternatives[1], (b" 5".to_vec(), -1.5));
    }

    #[test]
    fn bodies_without_a_message_are_errors() {
        assert!(Reply::parse(br#"{"choices":[]}"#).unwrap_err().contains("choices[0]"));
        assert!(Reply::parse(br#"{"choices":[{"mess"#).is_err());
        let refused =
            br#"{"choices":[{"message":{"content":null,"refusal":"no"},"logprobs":null}]}"#;
        assert_eq!(Reply::parse(refused).unwrap().refusal.as_deref(), Some("no"));
        let other = br#"{"choices":[{"message":{"content":"x"},"logprobs":{"content":null}}]}"#;
        assert_eq!(Reply::parse(other).unwrap().tokens, []);
        let without = br#"{"choices":[{"message":{"content":"4"},"logprobs":{"content":[
            {"token":"4","logprob":null,"top_logprobs":null}]}}]}"#;
        assert_eq!(Reply::parse(without).unwrap().tokens[0].alternatives, []);
    }
}
