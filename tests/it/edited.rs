//! Edited records, and comparisons of a run with itself.

use crate::folder::Folder;

fn judged() -> Folder {
    let folder = Folder::of(3);
    assert_eq!(folder.judge("out", &[]).code, 0);
    folder
}

#[test]
fn out_of_range_score_is_rejected_with_its_line() {
    let folder = judged();
    let whole = folder.read("out/records.jsonl");
    let at = whole.find("\"scores\":[").unwrap() + "\"scores\":[".len();
    let end = at + whole[at..].find(',').unwrap();
    for score in ["7.0", "-0.5"] {
        let edited = format!("{}{score}{}", &whole[..at], &whole[end..]);
        folder.write("out/records.jsonl", &edited);
        for command in [&["agree", "out"][..], &["rank", "out"], &["audit", "out"]] {
            let said = folder.run(command);
            assert_eq!(said.code, 2, "{command:?}: {}", said.err);
            let wanted = format!(
                "records.jsonl line 1: a score of {}",
                score.trim_end_matches(".0")
            );
            assert!(said.err.contains(&wanted), "{}", said.err);
            assert!(said.err.contains("hint: "), "{}", said.err);
        }
    }
    folder.write("out/records.jsonl", &whole);
    assert_eq!(folder.run(&["rank", "out"]).code, 0);
}

#[test]
fn comparing_a_judge_with_itself_is_reported() {
    let folder = judged();
    let labels = "case,model,score\nc0,alpha,4\nc0,beta,1\nc1,alpha,2\nc1,beta,3\n";
    folder.write("labels.csv", labels);
    let compared = ["agree", "out", "--labels", "labels.csv", "--against", "out"];
    let said = folder.run(&compared);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.contains("verdicts of the same judge"),
        "{}",
        said.err
    );
    let quiet = folder.run(&[&compared[..], &["--quiet"]].concat());
    assert!(quiet.err.is_empty(), "{}", quiet.err);
}
