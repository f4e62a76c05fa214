//! The `Judge` trait. A judge is a panel, or the scripted judge of the tests.

pub mod job_queue;
mod judge_job;
mod member_error;
mod recorded_alternative;
pub mod recorded_verdict;
mod rounding;
pub mod scripted;
pub mod server_report;
pub mod server_usage;
pub mod text_writer;

pub use self::judge_job::{JudgeJob, Unscored};
pub use self::member_error::MemberError;

use acem3_conclusion::Verdict;
use acem3_experts::Aspect;
use acem3_experts::prompt::Form;

use crate::checkpoints::panel::limits::PanelLimits;
use crate::judging::judge::job_queue::JobQueue;
use crate::judging::judge::server_report::ServerReport;
use crate::judging::judge::server_usage::{EarlierUsage, ServerUsage};
use crate::judging::provenance::Provenance;

/// Returns verdicts on responses.
///
/// A verdict depends only on its job, never on other jobs.
pub trait Judge {
    /// Returns the name for tables, on one line, with version or hash.
    fn name(&self) -> String;

    /// Returns the device, for the manifest.
    fn device(&self) -> String;

    /// Returns the form of judging.
    fn form(&self) -> Form {
        Form::Pair
    }

    /// Returns the lowest and the highest score of a criterion.
    fn score_range(&self) -> [u8; 2] {
        [0, 5]
    }

    /// Returns true if the judge scores an aspect. The default is the rubric of ACE-M³.
    fn scores_aspect(&self, aspect: Aspect) -> bool {
        Aspect::ALL.contains(&aspect)
    }

    /// Returns true if the judge sees the reference answer.
    fn shows_reference(&self) -> bool {
        false
    }

    /// Returns everything that can change a verdict: hashes of weights, tokenizer, rubric and
    /// layout, decoding settings, and presentation orders. It is part of the key of every verdict.
    fn provenance(&self) -> Provenance;

    /// Returns true if the prompts speak of an image even if a case has none, because the judge was
    /// trained on these prompts.
    fn assumes_image(&self) -> bool {
        false
    }

    /// Returns what the judge is known to judge badly; `None` if nothing is known.
    fn limits(&self) -> Option<&PanelLimits> {
        None
    }

    /// Returns true if the judge gives equal verdicts on equal jobs, bit for bit.
    fn is_reproducible(&self) -> bool {
        true
    }

    /// Returns the results of the tests of the servers that run members, for the manifest.
    fn servers(&self) -> Vec<ServerReport> {
        Vec::new()
    }

    /// Returns the number of requests and tokens so far, those of earlier commands included; `None` if no
    /// member is served.
    fn usage(&self) -> Option<ServerUsage> {
        None
    }

    /// Returns the number of evaluations and tokens that this process has computed so far; `None` if
    /// the judge does not count them.
    fn computed_usage(&self) -> Option<ServerUsage> {
        None
    }

    /// Counts the requests of earlier commands that the run resumes.
    fn add_earlier_usage(&mut self, _earlier: EarlierUsage) {}

    /// Returns the queue of a judge that takes jobs before it has finished earlier ones; `None` for a
    /// judge of batches.
    fn queue(&mut self) -> Option<&mut dyn JobQueue> {
        None
    }

    /// Returns why no prompt can hold a text, for example because it has more tokens than the
    /// context; `None` if a prompt may hold it. A run asks once per text, so that it does not
    /// tokenise a long response again for each pair.
    ///
    /// # Errors
    ///
    /// An error ends the run.
    fn reject_text(&self, text: &str) -> anyhow::Result<Option<String>>;

    /// Judges responses and returns one result per job, in order.
    ///
    /// # Errors
    ///
    /// An error ends the run. If only one job fails, its result is an [`Unscored`].
    fn judge(&mut self, jobs: &[JudgeJob]) -> anyhow::Result<Vec<Result<Verdict, Unscored>>>;
}
