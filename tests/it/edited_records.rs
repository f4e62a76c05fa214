//! Edited records, and comparisons of a run with itself.

use crate::folder::Folder;

fn judged_folder() -> Folder {
    let folder = Folder::with_cases(3);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
}

#[test]
fn out_of_range_score_is_rejected_with_its_line() {
    let folder = judged_folder();
    let original = folder.read("out/records.jsonl");
    let start = original.find("\"scores\":[").unwrap() + "\"scores\":[".len();
    let end = start + original[start..].find(',').unwrap();
    for score in ["7.0", "-0.5"] {
        let edited = format!("{}{score}{}", &original[..start], &original[end..]);
        folder.write("out/records.jsonl", &edited);
        for command in [&["agree", "out"][..], &["rank", "out"], &["audit", "out"]] {
            let output = folder.run(command);
            assert_eq!(output.exit_code, 2, "{command:?}: {}", output.stderr);
            let expected =
                format!("records.jsonl line 1: a score of {}", score.trim_end_matches(".0"));
            assert!(output.stderr.contains(&expected), "{}", output.stderr);
            assert!(output.stderr.contains("hint: "), "{}", output.stderr);
        }
    }
    folder.write("out/records.jsonl", &original);
    assert_eq!(folder.run(&["rank", "out"]).exit_code, 0);
}

#[test]
fn comparing_a_judge_with_itself_is_reported() {
    let folder = judged_folder();
    let labels = "case,model,score\nc0,alpha,4\nc0,beta,1\nc1,alpha,2\nc1,beta,3\n";
    folder.write("labels.csv", labels);
    let command = ["agree", "out", "--labels", "labels.csv", "--against", "out"];
    let output = folder.run(&command);
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    assert!(output.stderr.contains("verdicts of the same judge"), "{}", output.stderr);
    let quiet = folder.run(&[&command[..], &["--quiet"]].concat());
    assert!(quiet.stderr.is_empty(), "{}", quiet.stderr);
}
