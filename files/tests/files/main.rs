//! All integration tests, as one program. A file is a module here.

mod arrow;
mod common;
mod damage;
mod datasets;
mod errors;
mod fits;
mod formats;
mod hostile;
mod kinds;
mod labels;
mod made;
mod missing;
mod passes;
mod read_ahead;
mod samples;
mod shop;
mod sparse;
mod streams;
mod tables;
mod text;
