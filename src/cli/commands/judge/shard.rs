//! `--shard`: the part of the cases that a run judges.

use std::env;

use acem3_vision::DicomView;
use anyhow::{Result, bail};

use crate::cli::args::{JudgeArgs, ShardSource};
use crate::data::cases;
use crate::data::cases::{CaseHasher, UnscoredReason};
use crate::judging::run::manifest::{Manifest, RunStatus};
use crate::judging::run::output::contains_records;
use crate::judging::run::shard::{ShardInfo, SourceScan};
use crate::judging::run::summary::counts::RunCounts;
use crate::support::files::folder::free_sibling_name;

/// A shard of the source, and the source as it was read in advance.
pub(super) struct SourceShard {
    pub(super) info: ShardInfo,
    pub(super) scan: SourceScan,
    /// Where the number of the shard comes from, if not from the flag.
    pub(super) origin: Option<String>,
}

impl SourceShard {
    /// Returns the shard that the flags select; `None` without `--shard`. Reads all cases to count
    /// them.
    ///
    /// # Errors
    ///
    /// The environment names no shard, or the source cannot be opened.
    pub(super) fn from_args(args: &JudgeArgs) -> Result<Option<Self>> {
        let Some(flag) = args.shard else {
            return Ok(None);
        };
        if args.junit.is_some() {
            bail!(
                "--junit: not available with --shard, because --max-unscored is about all cases\n\
                 hint: pass --junit to `acem3 merge`"
            );
        }
        let (shard, source) = flag.resolve(|name| env::var(name).ok())?;
        let cases = cases::open(&args.source.path, &args.source_options())?;
        let scan = SourceScan::read(cases, source_hasher(args), args.limit);
        let view = args.source.dicom.to_view();
        let info = ShardInfo {
            baseline: args.baseline.clone(),
            dicom_view: (view != DicomView::default()).then(|| view.key_text()),
            ..shard.to_info(scan.cases)
        };
        let origin = match source {
            ShardSource::Flag => None,
            ShardSource::SlurmArray => Some("SLURM_ARRAY_TASK_ID".to_owned()),
            ShardSource::KubernetesJob => Some("JOB_COMPLETION_INDEX".to_owned()),
        };
        Ok(Some(Self { info, scan, origin }))
    }

    /// Describes the shard for the user.
    pub(super) fn note(&self) -> String {
        let ShardInfo { first_case, cases, source_cases, .. } = self.info;
        let part = match cases {
            0 => format!("none of {source_cases} cases"),
            _ => format!("cases {} to {} of {source_cases}", first_case + 1, first_case + cases),
        };
        let origin =
            self.origin.as_ref().map_or_else(String::new, |name| format!(" (from {name})"));
        format!("{}{origin}: {part}", self.info)
    }
}

/// Returns the hasher of the cases of the source.
pub(super) fn source_hasher(args: &JudgeArgs) -> CaseHasher {
    CaseHasher::new(cases::base_folder(&args.source.path))
}

/// Checks that the folder of an earlier run has the same shard.
///
/// # Errors
///
/// The folder has records of another part of the cases, or of all cases.
pub(super) fn check_same_shard(args: &JudgeArgs, shard: Option<&SourceShard>) -> Result<()> {
    // A damaged manifest is written again; its records are compared with the input one by one.
    let Ok(Some(earlier)) = Manifest::read_if_exists(&args.out) else {
        return Ok(());
    };
    let part = |info: Option<&ShardInfo>| info.map(|info| (info.index, info.of));
    let (found, wanted) = (earlier.shard.as_ref(), shard.map(|shard| &shard.info));
    let is_unused = earlier.status != RunStatus::Done && !contains_records(&args.out);
    if is_unused || part(found) == part(wanted) {
        return Ok(());
    }
    let name =
        |info: Option<&ShardInfo>| info.map_or_else(|| "all cases".to_owned(), ToString::to_string);
    let resumed = match (found, wanted) {
        (Some(ShardInfo { index, of, .. }), None) => {
            format!("pass --shard {index}/{of} to resume it, or ")
        }
        _ => String::new(),
    };
    bail!(
        "--out {}: an earlier run judges {} there, this run {}\n\
         hint: {resumed}use one folder per shard, for example --out {}",
        args.out.display(),
        name(found),
        name(wanted),
        free_sibling_name(&args.out).display()
    )
}

/// Returns the counts that `--max-unscored` looks at. Input problems can be many in one shard and few
/// in all, so `acem3 merge` looks at them.
pub(super) fn checked_counts(counts: &RunCounts, is_shard: bool) -> RunCounts {
    let mut checked = counts.clone();
    if is_shard {
        let is_input = |reason: &UnscoredReason| {
            matches!(reason, UnscoredReason::Parse | UnscoredReason::Image)
        };
        checked.unscored.retain(|reason, _| !is_input(reason));
        (checked.unreadable, checked.unlisted_pairs) = (0, 0);
    }
    checked
}
