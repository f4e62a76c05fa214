//! A checkpoint in memory that writes free text. Requests may start while others are in progress.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use acem3_experts::Error;
use acem3_experts::generate::{AnswerQueue, AnswerTask, FinishedAnswer, FreeAnswer};
use acem3_experts::prompt::{PromptPiece, StagedPrompt, tokenize_pieces};
use anyhow::{Context as _, Result, bail};

use super::load::Panel;
use super::scheduling::{GroupCache, JobWindow, to_unscored};
use super::trunk_group::TrunkGroup;
use crate::data::cases::UnscoredReason;
use crate::judging::judge::Unscored;
use crate::judging::judge::server_usage::{EarlierUsage, ServerUsage};
use crate::judging::judge::text_writer::{
    FinishedText, TextRequest, TextSampling, TextWriter, WriterSettings, WrittenText,
};

/// The member that writes: all members of a published checkpoint are the same model.
const MEMBER: usize = 0;
/// Name of the member in the hashes of the panel.
const MEMBER_NAME: &str = "expression";

/// A checkpoint that writes free text. A text does not depend on the others in progress.
pub struct LocalWriter {
    panel: Panel,
    cache: GroupCache,
    answers: AnswerQueue,
    /// Request of each answer in progress, by the number of the answer.
    requests: HashMap<usize, u64>,
    /// Requests that have not started.
    submitted: VecDeque<(u64, TextRequest)>,
    done: VecDeque<FinishedText>,
    window: JobWindow,
    usage: ServerUsage,
}

impl LocalWriter {
    /// Creates the writer of a panel whose members are one published checkpoint.
    ///
    /// # Errors
    ///
    /// The members are several models, or the sampling is not greedy.
    pub fn new(panel: Panel, sampling: TextSampling, batch_size: usize) -> Result<Self> {
        if !sampling.is_greedy() || sampling.top_k.is_some() {
            bail!(
                "--temperature {}: a checkpoint writes greedily\n\
                 hint: omit --temperature and --top-k, or serve the model and pass --panel URL",
                sampling.temperature
            );
        }
        if panel.groups.len() != 1 {
            bail!("{}: its members are several models, expected one", panel.name());
        }
        Ok(Self {
            panel,
            cache: GroupCache::default(),
            answers: AnswerQueue::new(MEMBER, sampling.max_tokens as usize),
            requests: HashMap::new(),
            submitted: VecDeque::new(),
            done: VecDeque::new(),
            window: JobWindow::new(batch_size, 1),
            usage: ServerUsage::default(),
        })
    }

    /// Adds a token to each text in progress.
    fn step(&mut self) -> Result<()> {
        let group = self.panel.groups.first().context("a panel without members")?;
        let (answers, prefixes) = (&mut self.answers, &mut self.cache.prefixes);
        // On a thread of the pool, small parallel operations start without waking another thread.
        let finished = rayon::scope(|_| group.engine.step_answers(answers, prefixes))?;
        for FinishedAnswer { number, result } in finished {
            let Some(number) = self.requests.remove(&number) else {
                continue;
            };
            let result = match result {
                Ok(answer) => self.count_text(&answer),
                Err(error) => Err(to_unwritten(error)?),
            };
            self.finish(number, result);
        }
        Ok(())
    }

    /// Starts a request, or finishes it if it cannot be answered.
    fn start(&mut self, number: u64, request: TextRequest) -> Result<()> {
        match self.prepare_task(request)? {
            Ok(task) => {
                let group = self.panel.groups.first().context("a panel without members")?;
                let answer = group.engine.enqueue_answer(&mut self.answers, &task);
                self.requests.insert(answer, number);
            }
            Err(unscored) => self.finish(number, Err(unscored)),
        }
        Ok(())
    }

    fn finish(&mut self, number: u64, result: Result<WrittenText, Unscored>) {
        if result.is_ok() {
            self.window.finish_job(Instant::now());
        }
        self.done.push_back(FinishedText { number, result });
    }

    /// Returns the task of a request: its prompt in the chat template, with the start of the answer, and
    /// the tokens of its image.
    fn prepare_task(&mut self, request: TextRequest) -> Result<Result<AnswerTask, Unscored>> {
        let TextRequest { pieces, image, .. } = request;
        let group = self.panel.groups.first().context("a panel without members")?;
        let image = match &image {
            Some(image) => match self.cache.encode_image(group, image)? {
                Ok(tokens) => tokens,
                Err(unscored) => return Ok(Err(unscored)),
            },
            None => None,
        };
        let prompt = match prompt_tokens(group, pieces, image.is_some()) {
            Ok(prompt) => prompt,
            Err(error) => return Ok(Err(to_unwritten(error)?)),
        };
        Ok(Ok(AnswerTask { prompt, image }))
    }

    /// Counts an answer, and returns its text or the reason for none.
    fn count_text(&mut self, answer: &FreeAnswer) -> Result<WrittenText, Unscored> {
        let written = answer.tokens.len() as u64;
        self.usage.requests += 1;
        self.usage.prompt_tokens += answer.prompt_tokens as u64;
        self.usage.written_tokens += written;
        let text = answer.text.trim();
        if text.is_empty() {
            let message = "the model wrote nothing".to_owned();
            return Err(Unscored::new(UnscoredReason::Refused, message));
        }
        Ok(WrittenText {
            text: text.to_owned(),
            is_cut: answer.is_cut,
            prompt_tokens: Some(answer.prompt_tokens as u64),
            written_tokens: Some(written),
        })
    }
}

/// Returns the tokens of a prompt in the chat template, with the start of the answer. Without an image
/// the place of the image is left out.
fn prompt_tokens(
    group: &TrunkGroup,
    mut pieces: Vec<PromptPiece>,
    has_image: bool,
) -> Result<StagedPrompt, Error> {
    let (template, tokenizer) = (&group.chat_template, group.engine.tokenizer());
    pieces.retain(|piece| has_image || *piece != PromptPiece::Image);
    if !template.image_markers.after.ends_with('\n') {
        add_line_break(&mut pieces);
    }
    let pieces = template.wrap(pieces);
    let texts = pieces.iter().filter(|piece| matches!(piece, PromptPiece::Quoted(_))).count();
    let mut prompt = StagedPrompt::new(&pieces, texts, tokenizer)?;
    let lead = tokenize_pieces(&[PromptPiece::Trusted(template.lead.clone())], tokenizer)?;
    if !lead.is_empty() {
        prompt.stages.push(lead);
    }
    Ok(prompt)
}

/// Adds a line break between an image and a text that follows it directly, as in the prompts that the
/// published models were trained with.
fn add_line_break(pieces: &mut Vec<PromptPiece>) {
    let Some(image) = pieces.iter().position(|piece| *piece == PromptPiece::Image) else {
        return;
    };
    let follows_directly = match pieces.get(image + 1) {
        Some(PromptPiece::Trusted(text)) => !text.starts_with(char::is_whitespace),
        Some(PromptPiece::Quoted(_)) => true,
        Some(PromptPiece::Image) | None => false,
    };
    if follows_directly {
        pieces.insert(image + 1, PromptPiece::Trusted("\n".to_owned()));
    }
}

/// Converts errors about a single request to its reason; returns other errors.
fn to_unwritten(error: Error) -> Result<Unscored> {
    match error {
        Error::TooLong { prompt, evaluation, context } => Ok(Unscored::new(
            UnscoredReason::Truncated,
            format!(
                "the prompt has {prompt} tokens and its answer up to {evaluation}, expected at most \
                 {context} together\n\
                 hint: pass a smaller --max-tokens, or use a model with a longer context"
            ),
        )),
        Error::Template(message) => Ok(Unscored::new(UnscoredReason::Refused, message)),
        error => to_unscored(error),
    }
}

impl TextWriter for LocalWriter {
    fn describe(&self) -> String {
        format!("{} on {}", self.panel.name(), self.panel.device())
    }

    fn settings(&self) -> WriterSettings {
        let mut settings = WriterSettings::new();
        for part in ["model", "weights", "tokenizer"] {
            if let Some(hash) = self.panel.hashes.get(&format!("{MEMBER_NAME} {part}")) {
                settings.insert(part.to_owned(), hash.clone());
            }
        }
        let weights = self.panel.placement.weight_type();
        settings.insert("engine".to_owned(), format!("greedy {weights}, version 1"));
        settings
    }

    fn sees_images(&self) -> bool {
        self.panel.sees_images()
    }

    fn capacity(&self) -> usize {
        self.window.jobs()
    }

    fn check_budget(&self) -> Result<()> {
        Ok(())
    }

    fn submit(&mut self, number: u64, request: TextRequest) {
        self.window.start_job(Instant::now());
        self.submitted.push_back((number, request));
    }

    fn next_finished(&mut self, timeout: Duration) -> Result<Option<FinishedText>> {
        let end = Instant::now() + timeout;
        while let Some((number, request)) = self.submitted.pop_front() {
            self.start(number, request)?;
        }
        // Without a wait, the caller only takes what is finished, and may submit more.
        while self.done.is_empty() && !self.answers.is_empty() && Instant::now() < end {
            self.step()?;
        }
        Ok(self.done.pop_front())
    }

    fn usage(&self) -> ServerUsage {
        self.usage
    }

    fn add_earlier_usage(&mut self, earlier: EarlierUsage) {
        let ServerUsage { requests, prompt_tokens, written_tokens, .. } = earlier.usage;
        self.usage.requests += requests;
        self.usage.prompt_tokens += prompt_tokens;
        self.usage.written_tokens += written_tokens;
    }
}
