//! A judge without weights for tests: its scores are a hash of its input.
//!
//! Scores depend on the texts, the image and the presentation order only, like those of a real
//! judge. `--help` does not list it, because its verdicts mean nothing. CONTRIBUTING.md describes
//! it.

use std::thread::sleep;
use std::time::Duration;

use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::{Aspect, BranchEvaluation, Rating, Score};
use anyhow::bail;

use crate::data::cases::UnscoredReason;
use crate::judging::judge::{Judge, PairJob, Unscored};
use crate::judging::provenance::Provenance;
use crate::support::digest::Digest;

/// Marker text. The scripted judge reports a pair with a response that contains it as
/// too long.
pub const TOO_LONG: &str = "[[too long]]";

/// Marker text. The scripted judge reports that no prompt can hold a text with it.
pub const NEVER_FITS: &str = "[[never fits]]";

/// A deterministic judge for tests.
#[derive(Clone, Debug, Default)]
pub struct ScriptedJudge {
    seed: u64,
    delay: Duration,
    fail_after: Option<u64>,
    single_order: bool,
    scores_only: bool,
    /// Number of pairs judged so far.
    judged: u64,
}

impl ScriptedJudge {
    /// Parses a script: comma-separated options `seed=N`, `slow` (30 ms per pair),
    /// `slow=MS` and `fail-after=N` (the engine fails after N pairs).
    ///
    /// # Errors
    ///
    /// An unknown option.
    pub fn parse(script: &str, single_order: bool, scores_only: bool) -> anyhow::Result<Self> {
        let mut judge = Self { single_order, scores_only, ..Self::default() };
        for part in script.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, "30"));
            match (name, value.parse::<u64>()) {
                ("seed", Ok(seed)) => judge.seed = seed,
                ("slow", Ok(ms)) => judge.delay = Duration::from_millis(ms),
                ("fail-after", Ok(pairs)) => judge.fail_after = Some(pairs),
                _ => bail!(
                    "--panel scripted: unknown option `{part}`, \
                     expected seed=N, slow=MS or fail-after=N\n\
                     hint: pass for example --panel scripted:seed=2,slow=40"
                ),
            }
        }
        Ok(judge)
    }

    fn order(&self, job: &PairJob, swapped: bool) -> OrderVerdict {
        let rating = |name: &str, r: usize| self.rating(job, name, r, swapped);
        let branch = |aspect: Aspect| BranchEvaluation {
            aspect,
            ratings: (aspect.criteria().iter())
                .map(|c| (*c, [rating(c.key(), 0), rating(c.key(), 1)]))
                .collect(),
        };
        OrderVerdict {
            swapped,
            branches: Aspect::ALL.map(branch).into(),
            conclusion: [rating("conclusion", 0), rating("conclusion", 1)],
        }
    }

    fn rating(&self, job: &PairJob, name: &str, r: usize, swapped: bool) -> Rating {
        let image = job.image.as_ref().map(|image| image.sha256);
        let input = format!("{} {name} {image:?} {}", self.seed, job.question());
        let text = job.responses()[r];
        let mut logits = [0.0; 6];
        for (logit, byte) in
            logits.iter_mut().zip(Digest::sha256(format!("{input} {text}").as_bytes()).as_bytes())
        {
            *logit = f32::from(*byte) / 48.0;
        }
        // A small position bias for the response shown first, like that of real judges.
        if (r == 1) == swapped {
            logits[5] += 0.7;
        }
        let score = Score::from_logits(logits);
        let analysis =
            if self.scores_only { String::new() } else { format!("{name} is {}", score.value) };
        Rating { analysis, cut: false, score }
    }
}

impl Judge for ScriptedJudge {
    fn name(&self) -> String {
        format!("scripted test judge (seed {})", self.seed)
    }

    fn device(&self) -> String {
        "none".to_owned()
    }

    fn provenance(&self) -> Provenance {
        let entries = [
            ("panel", "scripted".to_owned()),
            ("seed", self.seed.to_string()),
            ("orders", if self.single_order { "single" } else { "both" }.to_owned()),
            ("texts", if self.scores_only { "scores only" } else { "analyses" }.to_owned()),
        ];
        entries.map(|(name, value)| (name.to_owned(), value)).into()
    }

    fn reject_text(&self, text: &str) -> anyhow::Result<Option<String>> {
        let is_rejected = text.contains(NEVER_FITS);
        Ok(is_rejected.then(|| format!("it has {} bytes, too long for every prompt", text.len())))
    }

    fn judge(&mut self, jobs: &[PairJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>> {
        let verdict = |job: &PairJob| {
            sleep(self.delay);
            if job.responses().iter().any(|text| text.contains(TOO_LONG)) {
                let message = "a response does not fit into the context".to_owned();
                return Err(Unscored { reason: UnscoredReason::Truncated, message });
            }
            let orders: &[bool] = if self.single_order { &[false] } else { &[false, true] };
            Ok(Verdict { orders: orders.iter().map(|s| self.order(job, *s)).collect() })
        };
        if self.fail_after.is_some_and(|limit| self.judged + jobs.len() as u64 > limit) {
            bail!("scripted to fail here");
        }
        let verdicts = jobs.iter().map(verdict).collect();
        self.judged += jobs.len() as u64;
        Ok(verdicts)
    }
}
