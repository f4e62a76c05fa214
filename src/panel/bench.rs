//! The panel in session: pairs in, verdicts out.

use std::collections::HashMap;
use std::sync::Arc;

use acem3_conclusion::{OrderVerdict, Verdict};
use acem3_experts::generate::{ImageTokens, Prefixes, Task};
use acem3_experts::prompt::JudgeInput;
use acem3_experts::{Aspect, BranchEvaluation, BranchJudge, Error, Rating};
use anyhow::{Context, Result};

use super::load::Panel;
use crate::cases::Reason;
use crate::images::LoadedImage;
use crate::judge::{Judge, PairJob, Unscored};
use crate::key::{Provenance, judge_digest};

/// What a member wrote about a sitting, or why it could not.
type Written = Result<Vec<Rating>, Error>;

/// Images whose tokens are kept, for further questions about them.
const IMAGES: usize = 32;

/// How a panel is used in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Judge one presentation order instead of both.
    pub single_order: bool,
}

/// A panel with what it remembers between batches. Nothing of it moves a verdict.
pub struct Bench {
    panel: Panel,
    options: Options,
    prefixes: Prefixes,
    images: HashMap<String, Arc<ImageTokens>>,
}

/// One pair in one order, on its way to a verdict.
struct Sitting<'a> {
    job: usize,
    swapped: bool,
    input: JudgeInput<'a>,
    image: Option<Arc<ImageTokens>>,
    branches: Result<Vec<BranchEvaluation>, Unscored>,
}

impl Bench {
    /// A panel that begins to judge.
    pub fn new(panel: Panel, options: Options) -> Self {
        Self {
            panel,
            options,
            prefixes: Prefixes::default(),
            images: HashMap::new(),
        }
    }

    /// Both orders of every job.
    fn sittings<'a>(&mut self, jobs: &'a [PairJob]) -> Result<Vec<Sitting<'a>>> {
        let mut sittings = Vec::new();
        for (i, job) in jobs.iter().enumerate() {
            let image = match &job.image {
                Some(image) => self.see(image)?.map(Some),
                None => Ok(None),
            };
            let orders: &[bool] = if self.options.single_order {
                &[false]
            } else {
                &[false, true]
            };
            for swapped in orders {
                let [first, second] = job.responses();
                let responses = if *swapped {
                    [second, first]
                } else {
                    [first, second]
                };
                sittings.push(Sitting {
                    job: i,
                    swapped: *swapped,
                    input: JudgeInput {
                        image: job.image.is_some(),
                        question: job.question(),
                        responses,
                    },
                    image: image.clone().unwrap_or_default(),
                    branches: image.clone().map(|_| Vec::new()),
                });
            }
        }
        Ok(sittings)
    }

    /// The tokens of an image. Each is encoded alone, so that they never depend on the batch.
    fn see(&mut self, image: &LoadedImage) -> Result<Result<Arc<ImageTokens>, Unscored>> {
        let key = image.sha256.to_string();
        if let Some(tokens) = self.images.get(&key) {
            return Ok(Ok(tokens.clone()));
        }
        let seen = self
            .panel
            .eyes
            .see(&image.decoded)
            .with_context(|| image.name.clone())?;
        let tokens = match seen {
            Ok(tokens) => tokens,
            Err(error) => {
                let message = format!("{}: {error}", image.name);
                return Ok(Err(Unscored {
                    reason: Reason::Image,
                    message,
                }));
            }
        };
        let tokens = Arc::new(ImageTokens {
            key: key.clone(),
            tokens,
        });
        if self.images.len() >= IMAGES {
            self.images.clear();
        }
        self.images.insert(key, tokens.clone());
        Ok(Ok(tokens))
    }

    /// The three experts write about every sitting.
    fn evaluate(&mut self, sittings: &mut [Sitting]) -> Result<()> {
        let engine = &self.panel.engine;
        let mut asked: Vec<&mut Sitting> = sittings
            .iter_mut()
            .filter(|sitting| sitting.branches.is_ok())
            .collect();
        let mut tasks: Vec<Task> = Vec::new();
        for sitting in &asked {
            let image = sitting.image.as_ref();
            tasks.extend(
                self.panel
                    .branches
                    .tasks(&sitting.input, image, engine.tokenizer())?,
            );
        }
        let mut written = engine.write(&tasks, &mut self.prefixes)?.into_iter();
        for sitting in &mut asked {
            for (aspect, ratings) in Aspect::ALL.into_iter().zip(written.by_ref()) {
                match (ratings, &mut sitting.branches) {
                    (Ok(ratings), Ok(branches)) => {
                        branches.push(BranchJudge::evaluation(aspect, ratings));
                    }
                    (Err(error), branches) => *branches = Err(unscored(error)?),
                    (Ok(_), Err(_)) => {}
                }
            }
        }
        Ok(())
    }

    /// The conclusion model writes about every sitting that the experts could finish.
    fn conclude(&mut self, sittings: &[Sitting]) -> Result<Vec<Option<Written>>> {
        let engine = &self.panel.engine;
        let mut tasks = Vec::new();
        for sitting in sittings {
            if let Ok(branches) = &sitting.branches {
                let (input, image) = (&sitting.input, sitting.image.as_ref());
                let conclusion = &self.panel.conclusion;
                tasks.push(conclusion.task(input, image, branches, engine.tokenizer())?);
            }
        }
        let mut written = engine.write(&tasks, &mut self.prefixes)?.into_iter();
        Ok(sittings
            .iter()
            .map(|s| {
                if s.branches.is_ok() {
                    written.next()
                } else {
                    None
                }
            })
            .collect())
    }
}

impl Judge for Bench {
    fn name(&self) -> String {
        let digest = judge_digest(&self.panel.hashes).to_string();
        let hash = digest.get(..8).unwrap_or_default();
        format!("{} ({hash})", self.panel.spec.name)
    }

    fn device(&self) -> String {
        match self.panel.eyes.device().location() {
            candle::DeviceLocation::Cpu => "cpu".to_owned(),
            candle::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
            candle::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
        }
    }

    fn provenance(&self) -> Provenance {
        let mut provenance: Provenance = self.panel.hashes.clone().into_iter().collect();
        let settings = self.panel.engine.settings();
        let orders = if self.options.single_order {
            "single"
        } else {
            "both"
        };
        let texts = if settings.scores_only {
            "scores-only"
        } else {
            "analyses"
        };
        provenance.insert("engine".to_owned(), "greedy f32, version 1".to_owned());
        provenance.insert("orders".to_owned(), orders.to_owned());
        provenance.insert("texts".to_owned(), texts.to_owned());
        provenance
    }

    fn judge(&mut self, jobs: &[PairJob]) -> Result<Vec<Result<Verdict, Unscored>>> {
        let mut sittings = self.sittings(jobs)?;
        self.evaluate(&mut sittings)?;
        let conclusions = self.conclude(&sittings)?;
        let mut verdicts: Vec<Result<Verdict, Unscored>> = jobs
            .iter()
            .map(|_| Ok(Verdict { orders: Vec::new() }))
            .collect();
        for (sitting, conclusion) in sittings.into_iter().zip(conclusions) {
            let verdict = &mut verdicts[sitting.job];
            let order = match (sitting.branches, conclusion) {
                (Err(unscored), _) => Err(unscored),
                (Ok(_), None) => continue,
                (Ok(_), Some(Err(error))) => Err(unscored(error)?),
                (Ok(branches), Some(Ok(ratings))) => {
                    let pair: [Rating; 2] = ratings.try_into().map_err(|_| {
                        anyhow::anyhow!("the conclusion did not rate both responses")
                    })?;
                    Ok(in_pair_order(sitting.swapped, branches, pair))
                }
            };
            match (verdict.as_mut(), order) {
                (Ok(verdict), Ok(order)) => verdict.orders.push(order),
                (Ok(_), Err(unscored)) => *verdict = Err(unscored),
                (Err(_), _) => {}
            }
        }
        Ok(verdicts)
    }
}

/// Puts what was written in presentation order into the order of the pair.
fn in_pair_order(
    swapped: bool,
    mut branches: Vec<BranchEvaluation>,
    mut conclusion: [Rating; 2],
) -> OrderVerdict {
    if swapped {
        conclusion.reverse();
        for (_, pair) in branches.iter_mut().flat_map(|b| &mut b.ratings) {
            pair.reverse();
        }
    }
    OrderVerdict {
        swapped,
        branches,
        conclusion,
    }
}

/// A case that does not fit has no verdict; any other failure is the engine's.
fn unscored(error: Error) -> Result<Unscored> {
    match error {
        Error::TooLong { .. } => Ok(Unscored {
            reason: Reason::Truncated,
            message: error.to_string(),
        }),
        error => Err(error.into()),
    }
}
