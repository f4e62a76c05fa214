//! Comparisons of a run with itself.

use crate::folder::Folder;

fn judged_folder() -> Folder {
    let folder = Folder::with_cases(3);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    folder
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
