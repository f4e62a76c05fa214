//! Errors of commands that read records: labels, audits, calibration, reports and metrics.

use super::Snapshots;
use super::errors::{Mistake, check, judged};
use crate::folder::Folder;

/// `acem3 agree` on the records of three cases, with a label file.
const fn labelled(name: &'static str, labels: fn(&Folder)) -> Mistake {
    Mistake { name, command: "agree out --labels labels.csv --resamples 100", prepare: labels }
}

const fn on_records(name: &'static str, command: &'static str) -> Mistake {
    Mistake { name, command, prepare: judged }
}

const MISTAKES: &[Mistake] = &[
    labelled("labels-missing", judged),
    labelled("labels-empty", |folder| labels(folder, "")),
    labelled("labels-without-case", |folder| {
        labels(folder, "question,mark\n1,2\n");
    }),
    labelled("labels-without-ratings", |folder| {
        labels(folder, "case,model\nc1,alpha\n");
    }),
    labelled("labels-column-unknown", |folder| {
        labels(folder, "case,model,score,comment\nc0,alpha,4,good\nc1,alpha,3,\nc2,alpha,1,\n");
    }),
    labelled("labels-score-is-a-word", |folder| {
        labels(folder, "case,model,score\nc0,alpha,4\nc1,alpha,good\n");
    }),
    labelled("labels-score-out-of-range", |folder| {
        labels(folder, "case,model,score\nc0,alpha,4\nc1,alpha,9\nc2,alpha,1\n");
    }),
    labelled("labels-rated-twice", |folder| {
        labels(folder, "case,model,score\nc1,alpha,4\nc1,alpha,3\n");
    }),
    labelled("labels-criterion-unknown", |folder| {
        labels(folder, "case,model,criterion,score\nc1,alpha,beauty,3\n");
    }),
    labelled("labels-of-other-cases", |folder| {
        labels(folder, "case,model,score\nz1,alpha,4\n");
    }),
    Mistake {
        name: "labels-beyond-the-scale",
        command: "agree out --labels labels.csv --scale 1,5",
        prepare: |folder| {
            labels(folder, "case,model,score\nc0,alpha,4\nc1,alpha,9\nc2,alpha,1\n");
        },
    },
    on_records("scale-reversed", "agree out --scale 5,1"),
    on_records("subgroup-unknown", "agree out --group-by organ"),
    on_records("records-missing", "agree nowhere"),
    on_records("records-folder-without-records", "rank cases"),
    Mistake {
        name: "records-malformed",
        command: "rank notes.jsonl",
        prepare: |folder| folder.write("notes.jsonl", "{\"case\": \"c1\"}\nmy notes\n"),
    },
    Mistake { name: "records-of-two-judges", command: "rank out other", prepare: two_judges },
    on_records("calibration-with-few-labels", "calibrate fit out"),
    on_records("calibration-missing", "calibrate apply out --calibration map.json"),
    on_records("audit-of-records-with-other-probes", "audit out --probes image"),
    on_records(
        "audit-limit-without-its-probe",
        "audit cases --probes position --max-errors-missed 30",
    ),
    on_records("report-form-unknown", "report out --out report.docx"),
    on_records("report-image-folder-missing", "report out --images elsewhere --out report.html"),
    on_records("metrics-without-references", "metrics cases"),
    on_records("metrics-without-a-model", "metrics cases --metrics bertscore"),
];

fn labels(folder: &Folder, text: &str) {
    judged(folder);
    folder.write("labels.csv", text);
}

fn two_judges(folder: &Folder) {
    judged(folder);
    let other = "judge cases --out other --panel scripted:seed=9";
    let output = folder.run(&other.split(' ').collect::<Vec<_>>());
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
}

#[test]
fn record_errors_match_snapshots() {
    let mut snapshots = Snapshots::open("records");
    check(&mut snapshots, MISTAKES);
    snapshots.finish();
}
