//! JUnit XML: results of checks for continuous integration.
//!
//! The elements are those that GitLab, Jenkins and GitHub actions read (schema of the Jenkins xUnit
//! plugin, `junit-10.xsd`).

use std::fmt::Write as _;

use super::file_form::{FileForm, starts_with};
use crate::support::text::escape::escape_xml;

/// Start of every file.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"acem3\"";

/// The form of a JUnit file.
pub(crate) const JUNIT_FORM: FileForm =
    FileForm { name: "a JUnit file of acem3", recognise: |file| starts_with(file, HEAD) };

/// Results of the checks of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JunitSuite {
    /// Name of the command.
    pub(crate) name: &'static str,
    /// What was checked, by name: the input and the judge.
    pub(crate) properties: Vec<(&'static str, String)>,
    /// One per check.
    pub(crate) cases: Vec<JunitCase>,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JunitCase {
    /// Name of the check: flag and limit.
    pub(crate) name: String,
    /// Outcome.
    pub(crate) outcome: JunitOutcome,
    /// The result in one sentence, with the measured value and the limit.
    pub(crate) message: String,
}

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JunitOutcome {
    /// The value meets the limit.
    Passed,
    /// The value does not meet the limit.
    Failed,
    /// There is no value.
    NotMeasured,
}

impl JunitSuite {
    /// Returns the content of the file.
    pub(crate) fn to_xml(&self) -> String {
        let count = |outcome| self.cases.iter().filter(|case| case.outcome == outcome).count();
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\"",
            self.cases.len(),
            count(JunitOutcome::Failed),
            count(JunitOutcome::NotMeasured)
        );
        let name = escape_xml(self.name);
        // Writing to a string cannot fail.
        let mut xml = format!("{HEAD} {counts}>\n  <testsuite name=\"{name}\" {counts}>\n");
        xml.push_str("    <properties>\n");
        for (name, value) in &self.properties {
            let (name, value) = (escape_xml(name), escape_xml(value));
            let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{value}\"/>");
        }
        xml.push_str("    </properties>\n");
        for case in &self.cases {
            let (title, message) = (escape_xml(&case.name), escape_xml(&case.message));
            let _ = writeln!(xml, "    <testcase name=\"{title}\" classname=\"{name}\">");
            let _ = match case.outcome {
                JunitOutcome::Passed => {
                    writeln!(xml, "      <system-out>{message}</system-out>")
                }
                JunitOutcome::Failed => writeln!(
                    xml,
                    "      <failure type=\"threshold\" message=\"{message}\">{message}</failure>"
                ),
                JunitOutcome::NotMeasured => writeln!(
                    xml,
                    "      <error type=\"not measured\" message=\"{message}\">{message}</error>"
                ),
            };
            xml.push_str("    </testcase>\n");
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_has_counts_and_escaped_text() {
        let case = |name: &str, outcome, message: &str| JunitCase {
            name: name.to_owned(),
            outcome,
            message: message.to_owned(),
        };
        let suite = JunitSuite {
            name: "acem3 audit",
            properties: vec![("source", "a & \"b\"".to_owned())],
            cases: vec![
                case("--max-flip-rate 5", JunitOutcome::Failed, "8.0 % > 5"),
                case("--min-image-effect 1", JunitOutcome::NotMeasured, "a\u{1b}[2J\nb\u{ffff}"),
                case("--max-asymmetry 1", JunitOutcome::Passed, "0.1 points"),
            ],
        };
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"acem3\" tests=\"3\" failures=\"1\" errors=\"1\">
  <testsuite name=\"acem3 audit\" tests=\"3\" failures=\"1\" errors=\"1\">
    <properties>
      <property name=\"source\" value=\"a &amp; &quot;b&quot;\"/>
    </properties>
    <testcase name=\"--max-flip-rate 5\" classname=\"acem3 audit\">
      <failure type=\"threshold\" message=\"8.0 % &gt; 5\">8.0 % &gt; 5</failure>
    </testcase>
    <testcase name=\"--min-image-effect 1\" classname=\"acem3 audit\">
      <error type=\"not measured\" message=\"a\\u{1b}[2J&#10;b\\u{ffff}\">a\\u{1b}[2J&#10;b\\u{ffff}</error>
    </testcase>
    <testcase name=\"--max-asymmetry 1\" classname=\"acem3 audit\">
      <system-out>0.1 points</system-out>
    </testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(suite.to_xml(), expected);
    }
}
