//! Tokenizer and chat template of the base: a server must write the prompts and texts of a member with
//! the tokens of a local member.

use acem3_experts::prompt::{ChatTemplate, EvaluationFormat, TokenStep};
use acem3_experts::{Aspect, TextTokenizer, largest_token_id, parse_tokenizer};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tokenizers::{AddedToken, Tokenizer};

/// Tokens that end a text, those of chat models first.
const END_TOKENS: [&str; 5] =
    ["<|eot_id|>", "<|im_end|>", "</s>", "<|end_of_text|>", "<|endoftext|>"];
/// The end of a text in a tokenizer that has none.
const NEW_END_TOKEN: &str = END_TOKENS[2];
/// Rows that a table of tokens grows by.
const ROW_BLOCK: usize = 64;

/// A token with its id.
pub(super) type NamedToken = (u32, String);

/// Tokenizer of the base.
pub(super) struct ServedTokenizer {
    tokenizer: Tokenizer,
    /// Id of the token of an image.
    pub(super) image_id: u32,
    /// The token that starts every text.
    pub(super) bos: Option<NamedToken>,
    /// The token that ends a text. A server writes it after a complete evaluation.
    pub(super) eos: NamedToken,
    /// Number of rows that the tables of tokens need.
    pub(super) vocabulary: usize,
}

impl ServedTokenizer {
    /// The token that stands for an image in a text.
    pub(super) const IMAGE: &'static str = "<image>";

    /// Adds the tokens that a server needs. `vocabulary`: number of rows of the tables of tokens.
    ///
    /// # Errors
    ///
    /// The evaluations contain special tokens, which servers do not write.
    pub(super) fn new(text: &TextTokenizer, vocabulary: usize) -> Result<Self> {
        check_formats(text)?;
        let mut tokenizer = parse_tokenizer(text.to_json()?.as_bytes())?;
        let image_id = add_special(&mut tokenizer, Self::IMAGE)?;
        let bos = match text.bos_tokens() {
            [] => None,
            [id] => Some((*id, text.token_text(*id).context("unknown first token")?)),
            several => bail!("every text starts with {} tokens, expected one", several.len()),
        };
        let has_token = |token: &&&str| tokenizer.token_to_id(token).is_some();
        let end_token = END_TOKENS.iter().find(has_token).copied().unwrap_or(NEW_END_TOKEN);
        let eos = (add_special(&mut tokenizer, end_token)?, end_token.to_owned());
        let largest = largest_token_id(&tokenizer).unwrap_or(0) as usize;
        let vocabulary = if largest < vocabulary {
            vocabulary
        } else {
            (largest + 1).next_multiple_of(ROW_BLOCK)
        };
        Ok(Self { tokenizer, image_id, bos, eos, vocabulary })
    }

    /// Returns the content of `tokenizer.json`.
    pub(super) fn to_json(&self) -> Result<String> {
        self.tokenizer.to_string(true).map_err(|error| anyhow!("{error}"))
    }

    /// Returns the content of `tokenizer_config.json`. `context`: number of tokens of a text.
    pub(super) fn config(&self, chat_template: &str, context: usize) -> Value {
        json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "processor_class": "LlavaProcessor",
            "bos_token": self.bos.as_ref().map(|(_, text)| text),
            "eos_token": self.eos.1,
            "pad_token": self.eos.1,
            "image_token": Self::IMAGE,
            "clean_up_tokenization_spaces": false,
            "model_max_length": context,
            "chat_template": chat_template,
        })
    }

    /// Returns a template of Jinja that renders a prompt as a local member reads it: the texts of the
    /// messages as they are, with the image where it stands, inside the text that the model expects
    /// around a prompt.
    pub(super) fn chat_template(&self, template: &ChatTemplate) -> Result<String> {
        let bos = self.bos.as_ref().map_or("", |(_, text)| text.as_str());
        let open = literal(&format!("{bos}{}", template.open))?;
        let image = literal(Self::IMAGE)?;
        let parts = format!(
            "{{%- for message in messages -%}}\
             {{%- if message['content'] is string -%}}\
             {{%- set prompt.text = prompt.text + message['content'] -%}}\
             {{%- else -%}}\
             {{%- for part in message['content'] -%}}\
             {{%- if part['type'] == 'image' -%}}{{%- set prompt.text = prompt.text + {image} -%}}\
             {{%- elif part['type'] == 'text' -%}}{{%- set prompt.text = prompt.text + part['text'] -%}}\
             {{%- endif -%}}\
             {{%- endfor -%}}\
             {{%- endif -%}}\
             {{%- endfor -%}}"
        );
        // As `ChatTemplate::wrap`: no line breaks before the text after the prompt.
        let prompt =
            if template.close.is_empty() { "prompt.text" } else { "prompt.text.rstrip('\\n')" };
        let close = literal(&template.close)?;
        Ok(format!(
            "{{%- set prompt = namespace(text='') -%}}{parts}{{{{- {open} + {prompt} + {close} -}}}}"
        ))
    }
}

/// Returns a text as a literal of Jinja, which has the escapes of JSON.
fn literal(text: &str) -> Result<String> {
    serde_json::to_string(text).context("cannot write the chat template")
}

/// Adds a special token, unless the tokenizer has it, and returns its id.
fn add_special(tokenizer: &mut Tokenizer, text: &str) -> Result<u32> {
    let token = AddedToken::from(text.to_owned(), true).normalized(false);
    tokenizer.add_special_tokens([token]).map_err(|error| anyhow!("{error}"))?;
    tokenizer.token_to_id(text).with_context(|| format!("cannot add the token {text}"))
}

/// Checks that the fixed texts of evaluations have no special tokens.
fn check_formats(tokenizer: &TextTokenizer) -> Result<()> {
    let experts = Aspect::ALL.into_iter().map(EvaluationFormat::for_aspect);
    for format in experts.chain([EvaluationFormat::for_conclusion()]) {
        for step in format.tokenize(tokenizer)? {
            let TokenStep::Literal(tokens) = step else {
                continue;
            };
            if let Some(token) = tokens.iter().find(|token| tokenizer.is_special(**token)) {
                let text = tokenizer.token_text(*token).unwrap_or_default();
                bail!(
                    "{text:?} is a special token, expected an ordinary text: servers do not write \
                     special tokens\n\
                     hint: train with `start = …` from a LLaVA checkpoint, whose tokenizer has no \
                     tokens for the prompts of acem3"
                );
            }
        }
    }
    Ok(())
}
