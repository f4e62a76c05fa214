//! Cases, images, imports, knowledge, labels, rows of public data sets, and phantoms.

pub mod cases;
pub mod dataset_rows;
pub mod images;
pub mod imports;
pub mod knowledge;
pub mod labels;
pub mod phantoms;
