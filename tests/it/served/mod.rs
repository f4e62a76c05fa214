//! Judges that a server runs: handshake, constraints, faults, hosts and keys.

pub(crate) mod constrained_text;
mod cost;
mod engine_settings;
mod engines;
mod faults;
mod handshake_errors;
mod looked_up;
mod mixed_panels;
pub(crate) mod mock_engine;
mod mock_http;
mod mock_reply;
mod panel_files;
mod privacy;
mod verified_runs;

use crate::folder::{Folder, ProgramOutput, program_output};

/// Runs `acem3 judge cases --out OUT` with flags.
fn judge(folder: &Folder, out: &str, flags: &[&str]) -> ProgramOutput {
    folder.run(&[&["judge", "cases", "--out", out], flags].concat())
}

/// As [`judge`], with environment variables.
fn judge_with_env(
    folder: &Folder,
    out: &str,
    flags: &[&str],
    variables: &[(&str, &str)],
) -> ProgramOutput {
    let mut command = folder.command(&[&["judge", "cases", "--out", out], flags].concat());
    command.envs(variables.iter().copied());
    program_output(&command.output().unwrap())
}
