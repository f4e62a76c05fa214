//! Damaged, forged and copied records: they do not count, and a resumed run judges them again.

use std::fs;

use acem3::analysis::verdicts::{self, ScoreKind};
use acem3::judging::run::record::checksum::append_checksum;
use serde_json::Value;

use crate::folder::{Folder, ProgramOutput, valid_case};

const RECORDS: &str = "out/records.jsonl";
const DAMAGED: &str = "out/records.damaged.jsonl";

/// Creates a folder with `n` judged cases. Returns it with the bytes of its records.
fn judged_folder(n: usize) -> (Folder, Vec<u8>) {
    let folder = Folder::with_cases(n);
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    let records = fs::read(folder.path(RECORDS)).unwrap();
    (folder, records)
}

/// Returns the lines of a file with their line breaks.
fn lines(records: &[u8]) -> Vec<Vec<u8>> {
    records.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Replaces a text in bytes.
fn replace(line: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(line.to_vec()).unwrap();
    assert!(text.contains(from), "{text}");
    text.replacen(from, to, 1).into_bytes()
}

fn rank(folder: &Folder) -> ProgramOutput {
    folder.run(&["rank", "out", "--resamples", "20", "--format", "json"])
}

fn ranked_pairs(output: &ProgramOutput) -> u64 {
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    serde_json::from_str::<Value>(&output.stdout).unwrap()["pairs"].as_u64().unwrap()
}

/// Damages to one line, with a part of the message about each.
fn damages(line: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut flipped = line.to_vec();
    flipped[line.len() / 3] ^= 1;
    let text = String::from_utf8(line.to_vec()).unwrap();
    let (fields, _) = text.split_once(",\"checksum\"").unwrap();
    let mut nul = line.to_vec();
    nul[100..200].fill(0);
    let mut invalid = line.to_vec();
    invalid[100..104].fill(0xff);
    let score = text.find("\"scores\":[").unwrap() + "\"scores\":[".len();
    let mut forged = line.to_vec();
    forged[score] = if forged[score] == b'5' { b'4' } else { b'5' };
    vec![
        ("the checksum does not match", flipped),
        ("the checksum does not match", forged),
        ("the checksum is missing", format!("{fields}}}\n").into_bytes()),
        ("the checksum is missing", replace(line, "\"checksum\"", "\"chacksum\"")),
        ("the checksum does not match", nul),
        ("is not UTF-8", invalid),
        ("not a record", [&line[..line.len() / 2], b"\n"].concat()),
        ("not a record", b"{}{}\n".to_vec()),
    ]
}

#[test]
fn damage_costs_only_its_line_and_is_judged_again() {
    let (folder, records) = judged_folder(4);
    let original = lines(&records);
    for index in [0, 2, 3] {
        for (problem, damaged) in damages(&original[index]) {
            let mut edited = original.clone();
            edited[index].clone_from(&damaged);
            fs::write(folder.path(RECORDS), edited.concat()).unwrap();
            let output = rank(&folder);
            assert_eq!(ranked_pairs(&output), 3, "{problem}: {}", output.stderr);
            for part in [
                "records.jsonl: 1 line is damaged and is not counted: ",
                &format!("line {}", index + 1),
                problem,
                "run the same `acem3 judge` command again",
            ] {
                assert!(output.stderr.contains(part), "{problem}: {}", output.stderr);
            }
            let output = folder.judge("out", &[]);
            assert!(output.stdout.contains("reused    3 of 4"), "{problem}: {}", output.stdout);
            assert!(output.stderr.contains("1 damaged line set aside"), "{}", output.stderr);
            assert!(!output.stderr.contains("the input or the settings"), "{}", output.stderr);
            assert_eq!(fs::read(folder.path(RECORDS)).unwrap(), records, "{problem}");
            assert_eq!(fs::read(folder.path(DAMAGED)).unwrap(), damaged, "{problem}");
            assert_eq!(rank(&folder).stderr, "");
            // The same line again is not added a second time.
            fs::write(folder.path(RECORDS), edited.concat()).unwrap();
            folder.judge("out", &[]);
            assert_eq!(fs::read(folder.path(DAMAGED)).unwrap(), damaged, "{problem}");
            fs::remove_file(folder.path(DAMAGED)).unwrap();
        }
    }
    assert!(!folder.path("out/records.aside.jsonl").exists());
}

/// Flips bits in every part of the first, a middle and the last line.
#[test]
fn no_flipped_bit_changes_a_verdict() {
    let (folder, records) = judged_folder(3);
    let intact = verdicts::read(&folder.path("out"), ScoreKind::Chosen).unwrap();
    assert_eq!(intact.run.complete, Some(true));
    for bit in (0..8 * records.len()).step_by(149) {
        let mut flipped = records.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(folder.path(RECORDS), &flipped).unwrap();
        let read = verdicts::read(&folder.path("out"), ScoreKind::Chosen).unwrap();
        assert_eq!(read.run.complete, Some(false), "bit {bit}");
        assert!(read.pairs.len() < intact.pairs.len(), "bit {bit}");
        assert!(read.pairs.iter().all(|pair| intact.pairs.contains(pair)), "bit {bit}");
    }
}

#[test]
fn records_of_other_runs_are_noticed() {
    let (folder, records) = judged_folder(4);
    let original = lines(&records);
    // A record of another judge, at any line.
    let other = ["judge", "cases", "--out", "other", "--panel", "scripted:seed=9"];
    assert_eq!(folder.run(&other).exit_code, 0);
    let foreign = lines(&fs::read(folder.path("other/records.jsonl")).unwrap());
    for index in [0, 3] {
        let mut edited = original.clone();
        edited[index].clone_from(&foreign[index]);
        fs::write(folder.path(RECORDS), edited.concat()).unwrap();
        let output = rank(&folder);
        assert_eq!(ranked_pairs(&output), 3);
        assert!(output.stderr.contains("a record of another judge"), "{}", output.stderr);
        assert_eq!(folder.judge("out", &[]).exit_code, 0);
        assert_eq!(fs::read(folder.path(RECORDS)).unwrap(), records);
    }
    // A record of the same judge on a case of another run, and records in another order.
    folder.write_cases(&(10..14).map(valid_case).collect::<Vec<_>>());
    fs::copy(folder.path("cases/images/0.png"), folder.path("cases/images/5.png")).unwrap();
    fs::copy(folder.path("cases/images/0.png"), folder.path("cases/images/6.png")).unwrap();
    assert_eq!(folder.judge("more", &[]).exit_code, 0);
    let more = lines(&fs::read(folder.path("more/records.jsonl")).unwrap());
    let (mut exchanged, mut moved, mut removed) =
        (original.clone(), original.clone(), original.clone());
    exchanged[1].clone_from(&more[1]);
    moved.swap(0, 2);
    removed.remove(1);
    for (edited, problem) in [
        (exchanged, "records were exchanged or moved"),
        (moved, "records were exchanged or moved"),
        (removed, "3 records, expected 4"),
    ] {
        fs::write(folder.path(RECORDS), edited.concat()).unwrap();
        let output = rank(&folder);
        assert!(output.stderr.contains(problem), "{}", output.stderr);
    }
}

#[test]
fn copied_verdict_counts_once() {
    let (folder, records) = judged_folder(3);
    let mut copied = lines(&records);
    copied.push(copied[0].clone());
    fs::write(folder.path(RECORDS), copied.concat()).unwrap();
    let output = rank(&folder);
    assert_eq!(ranked_pairs(&output), 3);
    assert!(output.stderr.contains("line 4 (case c0): a copy of line 1"), "{}", output.stderr);
    assert!(folder.judge("out", &[]).stdout.contains("reused    3 of 3"));
    assert_eq!(fs::read(folder.path(RECORDS)).unwrap(), records);
}

/// Removes checksums and the fields of the manifest that earlier versions did not write.
fn make_old(folder: &Folder) -> String {
    let old = folder.unchecked_records("out");
    folder.write(RECORDS, &old);
    let mut manifest = folder.manifest("out");
    for field in ["checksum", "record_checksums", "records_digest", "expected_cases"] {
        manifest.as_object_mut().unwrap().remove(field).unwrap();
    }
    folder.write("out/run.json", &serde_json::to_string_pretty(&manifest).unwrap());
    old
}

#[test]
fn run_of_an_earlier_version_is_read_and_gets_checksums() {
    let (folder, records) = judged_folder(4);
    let old = make_old(&folder);
    let output = rank(&folder);
    assert_eq!(ranked_pairs(&output), 4);
    assert!(output.stderr.contains("4 records without checksum"), "{}", output.stderr);
    // An impossible score is the only edit that can be noticed without a checksum.
    let start = old.find("\"scores\":[").unwrap() + "\"scores\":[".len();
    folder.write(RECORDS, &format!("{}9{}", &old[..start], &old[start + 1..]));
    let output = rank(&folder);
    assert_eq!(ranked_pairs(&output), 3);
    assert!(output.stderr.contains("line 1 (case c0): a score of 9"), "{}", output.stderr);
    folder.write(RECORDS, &old);
    let output = folder.judge("out", &[]);
    assert!(output.stdout.contains("reused    4 of 4"), "{}", output.stdout);
    let note = "4 records without checksum could not be checked and are used as found";
    assert!(output.stderr.contains(note), "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 2, "{}", output.stderr);
    assert_eq!(fs::read(folder.path(RECORDS)).unwrap(), records);
    assert!(!folder.path(DAMAGED).exists());
}

#[test]
fn damaged_manifest_is_reported_and_written_again() {
    let (folder, records) = judged_folder(2);
    let manifest = folder.read("out/run.json");
    for damaged in [
        manifest.replace("\"done\"", "\"failed\""),
        manifest.replace("\"checksum\"", "\"chacksum\""),
        manifest[..manifest.len() / 2].to_owned(),
        String::new(),
    ] {
        folder.write("out/run.json", &damaged);
        let output = rank(&folder);
        assert_eq!(output.exit_code, 2, "{}", output.stdout);
        for part in ["out/run.json: damaged", "hint: run the same `acem3 judge` command again"] {
            assert!(output.stderr.contains(part), "{}", output.stderr);
        }
        let output = folder.judge("out", &[]);
        assert!(output.stderr.contains("run.json is damaged; writing it again"));
        assert!(output.stdout.contains("reused    2 of 2"), "{}", output.stdout);
        assert_eq!(fs::read(folder.path(RECORDS)).unwrap(), records);
        assert_eq!(rank(&folder).exit_code, 0);
    }
}

/// A forged verdict among the superseded records is not reused either.
#[test]
fn forged_superseded_record_is_not_reused() {
    let (folder, records) = judged_folder(4);
    let cases: Vec<_> = (0..4).map(valid_case).collect();
    folder.write_cases(&cases[..2]);
    folder.judge("out", &[]);
    let aside = folder.read("out/records.aside.jsonl");
    assert_eq!(aside.lines().count(), 2);
    let start = aside.find("\"scores\":[").unwrap() + "\"scores\":[".len();
    let score = if &aside[start..=start] == "5" { "4" } else { "5" };
    let forged = format!("{}{score}{}", &aside[..start], &aside[start + 1..]);
    folder.write("out/records.aside.jsonl", &forged);
    folder.write_cases(&cases);
    let output = folder.judge("out", &[]);
    assert!(output.stdout.contains("reused    3 of 4"), "{}", output.stdout);
    assert!(output.stderr.contains("in records.aside.jsonl"), "{}", output.stderr);
    assert_eq!(fs::read(folder.path(RECORDS)).unwrap(), records);
}

#[test]
fn records_without_any_intact_line_are_an_error() {
    let (folder, records) = judged_folder(1);
    let damaged = replace(&records, "beta", "zeta");
    fs::write(folder.path(RECORDS), damaged).unwrap();
    let output = rank(&folder);
    assert_eq!(output.exit_code, 2, "{}", output.stdout);
    assert!(output.stderr.contains("records.jsonl line 1: the checksum does not match"));
    assert!(output.stderr.contains("hint: run the same `acem3 judge` command again"));
    assert_eq!(folder.judge("out", &[]).exit_code, 0);
    assert_eq!(fs::read(folder.path(RECORDS)).unwrap(), records);
}

/// Somebody exchanges the scores of a record and writes the checksum that belongs to them.
#[test]
fn forged_record_is_still_reported_after_a_resumed_run() {
    let (folder, records) = judged_folder(4);
    let text = String::from_utf8(records.clone()).unwrap();
    let first = text.lines().next().unwrap();
    let fields = &first[..first.rfind(",\"checksum\"").unwrap()];
    let start = fields.find("\"scores\":[").unwrap() + "\"scores\":[".len();
    let scores = &fields[start..start + fields[start..].find(']').unwrap()];
    let (a, b) = scores.split_once(',').unwrap();
    assert_ne!(a, b);
    let forged = format!("{}{b},{a}{}}}", &fields[..start], &fields[start + scores.len()..]);
    folder.write(RECORDS, &text.replace(first, &append_checksum(&forged)));
    let strict = ["rank", "out", "--resamples", "20", "--complete"];
    assert_eq!(folder.run(&strict).exit_code, 2);
    for _ in 0..2 {
        let output = folder.judge("out", &[]);
        let note = "not the records that the finished run wrote";
        assert!(output.stderr.contains(note), "{}", output.stderr);
        assert_eq!(folder.run(&strict).exit_code, 2);
    }
    fs::write(folder.path(RECORDS), records).unwrap();
    assert_eq!(folder.run(&strict).exit_code, 0);
    assert!(!folder.judge("out", &[]).stderr.contains("not the records"));
    assert_eq!(folder.run(&strict).exit_code, 0);
}
