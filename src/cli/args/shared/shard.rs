//! The part of the cases that a run judges.

use anyhow::{Context as _, Result, bail, ensure};

use crate::judging::run::shard::Shard;
use crate::support::text::format_count;

/// Expected values of `--shard`.
const EXPECTED: &str = "expected I/N with I from 1 to N, such as 3/8; /N; or auto";

/// Value of `--shard`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardArg {
    /// `I/N`: this shard.
    Given(Shard),
    /// `/N`: one of this number of shards, whose index is in the environment.
    OneOf(u64),
    /// `auto`: index and number of shards are in the environment.
    Auto,
}

/// Where a shard is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardSource {
    /// The command line, or `ACEM3_SHARD`.
    Flag,
    /// The variables of a Slurm array.
    SlurmArray,
    /// The variables of an indexed Kubernetes job.
    KubernetesJob,
}

impl ShardArg {
    /// Variable with the number of shards of a Kubernetes job.
    pub const COUNT_VARIABLE: &str = "ACEM3_SHARD_COUNT";

    /// Parses a value of the flag.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let (index, of) = text.split_once('/').ok_or(EXPECTED)?;
        let of: u64 = of.parse().ok().filter(|n| *n > 0).ok_or(EXPECTED)?;
        if index.is_empty() {
            return Ok(Self::OneOf(of));
        }
        let shard = index.parse().ok().and_then(|index| Shard::new(index, of));
        shard.map(Self::Given).ok_or_else(|| EXPECTED.to_owned())
    }

    /// Returns the shard, with variables of the environment if the value asks for them.
    ///
    /// # Errors
    ///
    /// A variable is missing or contradicts another one.
    pub fn resolve(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(Shard, ShardSource)> {
        let count = match self {
            Self::Given(shard) => return Ok((shard, ShardSource::Flag)),
            Self::OneOf(count) => Some(count),
            Self::Auto => None,
        };
        let number = |name: &str| -> Result<Option<u64>> {
            let Some(text) = variable(name) else { return Ok(None) };
            let number = text.trim().parse().ok();
            let found = || {
                format!(
                    "--shard: {name} is `{text}`, expected a whole number\nhint: unset it and pass --shard I/N"
                )
            };
            Ok(Some(number.with_context(found)?))
        };
        let (slurm, kubernetes) = (number("SLURM_ARRAY_TASK_ID")?, number("JOB_COMPLETION_INDEX")?);
        match (slurm, kubernetes) {
            (Some(id), None) => {
                let shard = slurm_shard(id, count, number)?;
                Ok((shard, ShardSource::SlurmArray))
            }
            (None, Some(index)) => {
                let count = match count {
                    Some(count) => Some(count),
                    None => number(Self::COUNT_VARIABLE)?,
                };
                let count = count.with_context(|| {
                    format!(
                        "--shard auto: JOB_COMPLETION_INDEX has no number of shards\n\
                         hint: pass --shard /N with the `completions` of the job, or set {}",
                        Self::COUNT_VARIABLE
                    )
                })?;
                let shard = Shard::new(index.saturating_add(1), count).with_context(|| {
                    format!(
                        "--shard: JOB_COMPLETION_INDEX is {index}, expected 0 to {}\n\
                         hint: pass --shard /N with the `completions` of the job",
                        count - 1
                    )
                })?;
                Ok((shard, ShardSource::KubernetesJob))
            }
            (None, None) => bail!(
                "--shard: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set\n\
                 hint: run in a Slurm array or an indexed Kubernetes job, or pass --shard I/N"
            ),
            (Some(_), Some(_)) => bail!(
                "--shard: SLURM_ARRAY_TASK_ID and JOB_COMPLETION_INDEX are both set\n\
                 hint: pass --shard I/N"
            ),
        }
    }
}

/// Returns the shard of a task of a Slurm array.
fn slurm_shard(
    id: u64,
    count: Option<u64>,
    number: impl Fn(&str) -> Result<Option<u64>>,
) -> Result<Shard> {
    const HINT: &str = "hint: use an array such as 1-8, or pass --shard I/N";
    let required = |name: &str| {
        let missing = || format!("--shard: SLURM_ARRAY_TASK_ID is set, {name} is not\n{HINT}");
        number(name)?.with_context(missing)
    };
    let (tasks, first) = (required("SLURM_ARRAY_TASK_COUNT")?, required("SLURM_ARRAY_TASK_MIN")?);
    let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
    if let Some(count) = count {
        ensure!(
            count == tasks,
            "--shard /{count}: the Slurm array has {}, so parts would be missing or judged twice\n{}",
            format_count(tasks, "task"),
            match Shard::new(id, count) {
                // One task of an array that begins with 1 is repeated.
                Some(_) if tasks < count => format!(
                    "hint: to judge a part again, pass --shard {id}/{count}; else submit an array such as 1-{count}"
                ),
                _ => format!("hint: use an array such as 1-{count}, or pass --shard I/{count}"),
            }
        );
    }
    let offset = id.checked_sub(first).filter(|offset| offset % step == 0);
    let shard = offset.and_then(|offset| Shard::new(offset / step + 1, tasks));
    shard.with_context(|| {
        format!(
            "--shard: task {id} of a Slurm array of {tasks} tasks from {first} on is no task of a range \
             without gaps\n{HINT}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(value: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let resolved = ShardArg::parse(value)?.resolve(find);
        resolved.map(|(shard, _)| shard.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn shard_is_given_or_taken_from_the_environment_when_asked() {
        let slurm = |id| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_COUNT", "4"),
                ("SLURM_ARRAY_TASK_MIN", "0"),
                ("SLURM_ARRAY_TASK_STEP", "2"),
            ]
        };
        let shard = |text: &str| Ok(text.to_owned());
        assert_eq!(resolve("3/8", &slurm("0")), shard("shard 3 of 8"));
        assert_eq!(resolve("auto", &slurm("6")), shard("shard 4 of 4"));
        assert_eq!(resolve("/4", &slurm("0")), shard("shard 1 of 4"));
        let job = [("JOB_COMPLETION_INDEX", "7"), ("ACEM3_SHARD_COUNT", "8")];
        assert_eq!(resolve("auto", &job), shard("shard 8 of 8"));
        assert_eq!(resolve("/9", &job[..1]), shard("shard 8 of 9"));
    }

    #[test]
    fn contradictory_and_missing_variables_are_errors() {
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "9"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
        ];
        let job = ("JOB_COMPLETION_INDEX", "7");
        for (value, variables, part) in [
            ("auto", &slurm[..], "without gaps"),
            ("/8", &slurm[..], "has 4 tasks"),
            (
                "/8",
                &[("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_ARRAY_TASK_COUNT", "1"), slurm[2]],
                "pass --shard 3/8",
            ),
            ("auto", &slurm[..2], "SLURM_ARRAY_TASK_MIN is not"),
            ("auto", &[][..], "neither"),
            ("auto", &[job][..], "no number of shards"),
            ("/7", &[job][..], "expected 0 to 6"),
            ("auto", &[job, slurm[0]][..], "both set"),
            ("auto", &[("JOB_COMPLETION_INDEX", "x")][..], "expected a whole number"),
        ] {
            let error = resolve(value, variables).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
        }
        for value in ["0/3", "4/3", "3", "a/b", "1/0", "/0", ""] {
            assert!(ShardArg::parse(value).is_err(), "{value}");
        }
    }
}
