//! Small files that would use much memory or time, or end the program.

mod images;
mod measured_run;
mod tables;
mod texts;
