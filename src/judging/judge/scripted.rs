//! A judge without weights for tests: its scores are a hash of its input.
//!
//! Scores depend on the texts, the image and the presentation order only, like those of a real
//! judge. `--help` does not list it, because its verdicts mean nothing. CONTRIBUTING.md describes
//! it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::prompt::{Form, QUESTION, Rubric, RubricAspect, ScoreWords};
use acem3_experts::{Aspect, BranchEvaluation, Criterion, Lookup, Rating, Score};
use anyhow::bail;

use crate::data::cases::UnscoredReason;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::judging::knowledge::JudgeKnowledge;
use crate::judging::provenance::{Provenance, add_form};
use crate::support::digest::Digest;

/// Marker text. The scripted judge reports responses of which one contains it as too long.
pub const TOO_LONG: &str = "[[too long]]";

/// Marker text. The scripted judge reports that no prompt can hold a text with it.
pub const NEVER_FITS: &str = "[[never fits]]";

/// Settings of the scripted judge that real judges have too.
#[derive(Clone, Debug, Default)]
pub struct ScriptedSettings {
    /// True to judge pairs in one presentation order.
    pub single_order: bool,
    /// True for scores without analyses.
    pub scores_only: bool,
    /// The form of judging.
    pub form: Form,
    /// True if the judge sees the reference answer.
    pub shows_reference: bool,
    /// The rubric; `None` for that of ACE-M³.
    pub rubric: Option<Arc<Rubric>>,
    /// Where the judge looks up what it asks; `None` if it may not ask.
    pub knowledge: Option<JudgeKnowledge>,
}

/// A deterministic judge for tests.
#[derive(Clone, Debug, Default)]
pub struct ScriptedJudge {
    seed: u64,
    delay: Duration,
    fail_after: Option<u64>,
    /// True if scores do not depend on the reference, even if the judge sees it.
    ignores_reference: bool,
    /// True if every analysis asks the question of the case.
    asks: bool,
    settings: ScriptedSettings,
    /// Number of jobs judged so far.
    judged: u64,
}

/// A response as a prompt shows it.
struct ShownResponse<'a> {
    text: &'a str,
    is_first: bool,
}

impl ScriptedJudge {
    /// Parses a script: comma-separated options `seed=N`, `slow` (30 ms per pair),
    /// `slow=MS`, `fail-after=N` (the engine fails after N pairs), `ignores-reference` (scores do
    /// not depend on a reference that is shown) and `asks` (every analysis looks up the question of
    /// the case, and its score depends on what was found).
    ///
    /// # Errors
    ///
    /// An unknown option.
    pub fn parse(script: &str, settings: ScriptedSettings) -> anyhow::Result<Self> {
        let mut judge = Self { settings, ..Self::default() };
        for part in script.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, "30"));
            match (name, value.parse::<u64>()) {
                ("seed", Ok(seed)) => judge.seed = seed,
                ("slow", Ok(ms)) => judge.delay = Duration::from_millis(ms),
                ("fail-after", Ok(pairs)) => judge.fail_after = Some(pairs),
                ("ignores-reference", _) => judge.ignores_reference = true,
                ("asks", _) => judge.asks = true,
                _ => bail!(
                    "--panel scripted: unknown option `{part}`, \
                     expected seed=N, slow=MS, fail-after=N, ignores-reference or asks\n\
                     hint: pass for example --panel scripted:seed=2,slow=40"
                ),
            }
        }
        Ok(judge)
    }

    fn order(&self, job: &JudgeJob, rotation: usize) -> anyhow::Result<OrderVerdict> {
        let is_list = self.form() == Form::List;
        let lookups = self.look_up(job)?;
        let ratings = |name: &str| -> Vec<Rating> {
            let texts = job.texts().into_iter().enumerate();
            let shown = texts.map(|(r, text)| ShownResponse { text, is_first: r == rotation });
            shown.map(|response| self.rating(job, name, &response, &lookups)).collect()
        };
        let branches = match self.settings.form {
            Form::Pair | Form::Single | Form::List => {
                let aspects = self.aspects().into_iter();
                let branch = |(aspect, criteria): (Aspect, Vec<Criterion>)| BranchEvaluation {
                    aspect,
                    ratings: criteria.into_iter().map(|c| (c, ratings(c.key()))).collect(),
                };
                aspects.map(branch).collect()
            }
            Form::Correctness => Vec::new(),
        };
        Ok(OrderVerdict {
            swapped: !is_list && rotation == 1,
            first_shown: is_list.then_some(rotation),
            branches,
            conclusion: ratings("conclusion"),
        })
    }

    /// Looks up the question of the case, if every analysis asks it and there is an index.
    fn look_up(&self, job: &JudgeJob) -> anyhow::Result<Vec<Lookup>> {
        let Some(knowledge) = self.settings.knowledge.as_ref().filter(|_| self.asks) else {
            return Ok(Vec::new());
        };
        let passages = knowledge.find(job.question())?.into_iter().map(|passage| passage.id);
        Ok(vec![Lookup {
            question: job.question().to_owned(),
            passages: passages.collect(),
            position: 0,
        }])
    }

    /// Returns the aspects of the rubric with their criteria.
    fn aspects(&self) -> Vec<(Aspect, Vec<Criterion>)> {
        match &self.settings.rubric {
            Some(rubric) => {
                let criteria = |a: &RubricAspect| a.criteria.iter().map(|c| c.key).collect();
                rubric.aspects.iter().map(|aspect| (aspect.key, criteria(aspect))).collect()
            }
            None => Aspect::ALL.into_iter().map(|a| (a, a.criteria().to_vec())).collect(),
        }
    }

    fn rating(
        &self,
        job: &JudgeJob,
        name: &str,
        response: &ShownResponse<'_>,
        lookups: &[Lookup],
    ) -> Rating {
        let ShownResponse { text, is_first } = *response;
        let image = job.image.as_ref().map(|image| image.sha256);
        let mut input = format!("{} {name} {image:?} {}", self.seed, job.question());
        let uses_reference = self.shows_reference() && !self.ignores_reference;
        if let Some(reference) = job.case.reference.as_ref().filter(|_| uses_reference) {
            // A full stop more or less says the same, to real judges too.
            let _ = write!(input, " {}", reference.trim_end_matches('.'));
        }
        for passage in lookups.iter().flat_map(|lookup| &lookup.passages) {
            let _ = write!(input, " {passage}");
        }
        let words = match self.settings.form {
            Form::Pair | Form::Single | Form::List => {
                let rubric = self.settings.rubric.as_ref();
                rubric.map_or(ScoreWords::DEFAULT, |rubric| rubric.score_words())
            }
            Form::Correctness => ScoreWords::NoYes,
        };
        let digest = Digest::sha256(format!("{input} {text}").as_bytes());
        let mut logits: Vec<f32> = (words.words().into_iter().zip(digest.as_bytes()))
            .map(|(word, byte)| word.map_or(f32::MIN, |_| f32::from(*byte) / 48.0))
            .collect();
        // A small position bias for the response shown first, like that of real judges.
        if let (true, Some(best)) = (is_first && job.responses.len() > 1, logits.last_mut()) {
            *best += 0.7;
        }
        let score = Score::from_logits(&logits);
        let analysis = if self.settings.scores_only {
            String::new()
        } else if self.asks && lookups.is_empty() {
            format!("{name} is {} {QUESTION}: {}", score.value, job.question())
        } else {
            format!("{name} is {}", score.value)
        };
        Rating { lookups: lookups.to_vec(), ..Rating::new(analysis, score) }
    }
}

impl Judge for ScriptedJudge {
    fn name(&self) -> String {
        format!("scripted test judge (seed {})", self.seed)
    }

    fn device(&self) -> String {
        "none".to_owned()
    }

    fn form(&self) -> Form {
        self.settings.form
    }

    fn score_range(&self) -> [u8; 2] {
        self.settings.rubric.as_ref().map_or([0, 5], |rubric| rubric.scores)
    }

    fn scores_aspect(&self, aspect: Aspect) -> bool {
        self.aspects().iter().any(|(scored, _)| *scored == aspect)
    }

    fn shows_reference(&self) -> bool {
        self.settings.shows_reference
    }

    fn provenance(&self) -> Provenance {
        let ScriptedSettings {
            single_order,
            scores_only,
            form,
            shows_reference,
            rubric,
            knowledge,
        } = &self.settings;
        let entries = [
            ("panel", "scripted".to_owned()),
            ("seed", self.seed.to_string()),
            ("orders", if *single_order { "single" } else { "both" }.to_owned()),
            ("texts", if *scores_only { "scores only" } else { "analyses" }.to_owned()),
        ];
        let mut provenance: Provenance =
            entries.map(|(name, value)| (name.to_owned(), value)).into();
        if self.ignores_reference {
            provenance.insert("ignores".to_owned(), "reference".to_owned());
        }
        if self.asks {
            provenance.insert("asks".to_owned(), "the question of the case".to_owned());
        }
        if let Some(knowledge) = knowledge {
            knowledge.add_to(&mut provenance);
        }
        add_form(&mut provenance, *form, *shows_reference, rubric.as_deref());
        if let Some(rubric) = rubric {
            let digest = Digest::sha256(rubric.source().as_bytes());
            provenance.insert("rubric".to_owned(), digest.to_string());
        }
        provenance
    }

    fn reject_text(&self, text: &str) -> anyhow::Result<Option<String>> {
        let is_rejected = text.contains(NEVER_FITS);
        Ok(is_rejected.then(|| format!("it has {} bytes, too long for every prompt", text.len())))
    }

    fn judge(&mut self, jobs: &[JudgeJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>> {
        let verdict = |job: &JudgeJob| {
            sleep(self.delay);
            if job.texts().iter().any(|text| text.contains(TOO_LONG)) {
                let message = "a response does not fit into the context".to_owned();
                return Ok(Err(Unscored::new(UnscoredReason::Truncated, message)));
            }
            let rotations = self.form().rotations(job.responses.len(), self.settings.single_order);
            let orders = rotations.map(|rotation| self.order(job, rotation));
            Ok(Ok(Verdict { orders: orders.collect::<anyhow::Result<_>>()? }))
        };
        if self.fail_after.is_some_and(|limit| self.judged + jobs.len() as u64 > limit) {
            bail!("scripted to fail here");
        }
        let verdicts: anyhow::Result<_> = jobs.iter().map(verdict).collect();
        self.judged += jobs.len() as u64;
        verdicts
    }
}
