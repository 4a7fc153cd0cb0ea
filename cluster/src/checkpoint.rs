//! A job on disk after each iteration: a file of the model, with what else the next iteration needs as a note.

use crate::error::{Error, Result};
use crate::model::{Model, Precision};
use coremix::ModelInfo;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Where a job stands: what the next E-step starts from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) model: Model,
    pub(crate) course: Course,
}

/// The note: the state of a job besides its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Course {
    pub(crate) identity: Identity,
    /// The bits of those of the E-steps so far, one per M-step: decimal digits would round them.
    pub(crate) free_energies: Vec<u64>,
    pub(crate) coreset_rows: usize,
    /// Components without rows in the last E-step.
    pub(crate) zero_mass: usize,
}

/// A job goes on only if these are equal: the version, the settings, and the range of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) version: String,
    pub(crate) settings: String,
    pub(crate) table: String,
}

const NOTE: &str = "cluster-job";

fn wrong(path: &Path, what: impl ToString) -> Error {
    Error::Checkpoint {
        path: path.to_path_buf(),
        what: what.to_string(),
    }
}

impl State {
    /// Writes the file, all of it or nothing.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let note = serde_json::to_string(&self.course).map_err(|e| wrong(path, e))?;
        let saved = self.model.save_with_notes(path, &[(NOTE, &note)]);
        saved.map_err(|e| wrong(path, e))
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// A damaged file, or one of another job.
    pub(crate) fn load(
        path: &Path,
        precision: Precision,
        identity: &Identity,
    ) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let info = ModelInfo::of_file(path).map_err(|e| wrong(path, e))?;
        let course = info.note(NOTE).map(serde_json::from_str::<Course>);
        let Some(Ok(course)) = course else {
            let what = "a model, but no checkpoint of a job; name another file";
            return Err(wrong(path, what));
        };
        if course.identity != *identity {
            let found = &course.identity;
            let what =
                format!("of another job: {found:?}, here {identity:?}; remove it to start again");
            return Err(wrong(path, what));
        }
        let model = Model::load(precision, path).map_err(|e| wrong(path, e))?;
        Ok(Some(Self { model, course }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coremix::ndarray::array;

    #[test]
    fn a_checkpoint_comes_back_bit_for_bit_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.cmx");
        let means = array![[0.1, 0.2], [3.0, -4.0]];
        let identity = Identity {
            version: "1".into(),
            settings: "k-means { a: \"b\" }".into(),
            table: "1f".into(),
        };
        let energies = [-1.0 / 3.0, 2e300, f64::MIN_POSITIVE];
        let state = State {
            model: Model::from_parameters(Precision::Single, means.view(), 0.3).unwrap(),
            course: Course {
                identity: identity.clone(),
                free_energies: energies.map(f64::to_bits).to_vec(),
                coreset_rows: 12,
                zero_mass: 3,
            },
        };
        let load = |identity| State::load(&path, Precision::Single, identity);
        assert_eq!(load(&identity).unwrap(), None);
        state.save(&path).unwrap();
        assert_eq!(load(&identity).unwrap(), Some(state));

        let other = Identity {
            table: "2f".into(),
            ..identity.clone()
        };
        let error = load(&other).unwrap_err().to_string();
        assert!(error.contains("another job"), "{error}");

        let bytes = std::fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            std::fs::write(&path, damaged).unwrap();
            assert!(load(&identity).is_err(), "byte {at}");
        }
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(load(&identity).is_err());
    }
}
