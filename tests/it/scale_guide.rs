//! The scripts of the guide to many machines.

#![cfg(unix)]

use std::env;
use std::path::Path;
use std::process::Command;

use crate::folder::{Folder, ProgramOutput, program_output};
use crate::shards::{folder_with_problems, merge};

/// Returns the code block of the guide that contains a text.
fn guide_block(part: &str) -> String {
    let guide = include_str!("../../assets/guide/scale.md");
    let mut blocks = guide.split("\n```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains(part)).unwrap();
    block.split_once('\n').unwrap().1.to_owned()
}

/// Runs a script in the folder, with the program on the path. Returns the standard error.
fn run_script(folder: &Folder, shell: &[&str], variables: &[(&str, &str)]) -> ProgramOutput {
    let mut command = Command::new(shell[0]);
    let program = Path::new(env!("CARGO_BIN_EXE_acem3")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
    command.args(&shell[1..]).current_dir(folder.path("")).env("PATH", path);
    command.env("ACEM3_PANEL", "scripted:").envs(variables.iter().copied());
    program_output(&command.output().unwrap())
}

#[test]
fn scripts_of_the_guide_write_the_records_of_one_run() {
    let folder = folder_with_problems();
    folder.judge("all", &[]);
    let all = folder.read("all/records.jsonl");
    folder.write("judge.sh", &guide_block("#SBATCH --array=1-8"));
    folder.write("merge.sh", &guide_block("--job-name=acem3-merge"));
    for task in 1..=8 {
        let variables = [
            ("SLURM_ARRAY_TASK_ID", &*task.to_string()),
            ("SLURM_ARRAY_TASK_COUNT", "8"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
        ];
        let output = run_script(&folder, &["bash", "judge.sh"], &variables);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        let expected = format!("shard {task} of 8 (from SLURM_ARRAY_TASK_ID): cases ");
        assert!(output.stderr.contains(&expected), "{}", output.stderr);
    }
    let merged = run_script(&folder, &["bash", "merge.sh"], &[]);
    assert_eq!(merged.exit_code, 0, "{}{}", merged.stdout, merged.stderr);
    assert!(merged.stdout.ends_with("result    equal\n"), "{}", merged.stdout);
    assert_eq!(folder.read("out/verdicts/records.jsonl"), all);

    let job = guide_block("completionMode: Indexed");
    let script = job.lines().find_map(|line| line.trim().strip_prefix("- exec ")).unwrap();
    let script = script.replace("/data/", &format!("{}/", folder.path("").display()));
    for index in 0..8 {
        let index = index.to_string();
        let variables = [("JOB_COMPLETION_INDEX", index.as_str())];
        let output = run_script(&folder, &["sh", "-c", &script], &variables);
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
    }
    let parts: Vec<String> = (0..8).map(|index| format!("parts/{index}")).collect();
    assert_eq!(merge(&folder, &parts, "job", &[]).exit_code, 0);
    assert_eq!(folder.read("job/records.jsonl"), all);

    folder.write("gpus.sh", &guide_block("CUDA_VISIBLE_DEVICES"));
    let server = run_script(&folder, &["bash", "gpus.sh", "cases", "server", "3"], &[]);
    assert_eq!(server.exit_code, 0, "{}", server.stderr);
    assert_eq!(folder.read("server/verdicts/records.jsonl"), all);
}
