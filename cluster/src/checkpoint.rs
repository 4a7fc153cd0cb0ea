//! A job on disk after each iteration: a file of the model, with what else the next iteration needs as notes.

use crate::error::{Error, Result};
use crate::model::Model;
use coremix::ModelInfo;
use std::path::Path;

/// Where a job stands: what the next E-step starts from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) model: Model,
    /// Of the E-steps so far: one per M-step.
    pub(crate) free_energies: Vec<f64>,
    /// The smallest variance of a model of this table.
    pub(crate) floor: f64,
    pub(crate) coreset_rows: usize,
    /// Components without rows at the last M-step.
    pub(crate) zero_mass: usize,
}

/// What must be the same for a job to go on: settings, and the range of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    pub(crate) settings: String,
    pub(crate) table: String,
}

fn hex(numbers: &[f64]) -> String {
    let digits = |x: &f64| format!("{:016x}", x.to_bits());
    numbers.iter().map(digits).collect::<Vec<_>>().join(",")
}

fn of_hex(text: &str) -> Option<Vec<f64>> {
    let number = |digits| u64::from_str_radix(digits, 16).ok().map(f64::from_bits);
    match text {
        "" => Some(Vec::new()),
        _ => text.split(',').map(number).collect(),
    }
}

const SETTINGS: &str = "cluster-settings";
const TABLE: &str = "cluster-table";
const ENERGIES: &str = "cluster-free-energies";
const FLOOR: &str = "cluster-variance-floor";
const ROWS: &str = "cluster-coreset-rows";
const ZERO_MASS: &str = "cluster-zero-mass";
const VERSION: &str = "cluster-version";

impl State {
    /// Writes the file, all of it or nothing.
    pub(crate) fn save(&self, path: &Path, identity: &Identity) -> Result<()> {
        let (energies, floor) = (hex(&self.free_energies), hex(&[self.floor]));
        let (rows, zero_mass) = (self.coreset_rows.to_string(), self.zero_mass.to_string());
        let notes = [
            (VERSION, crate::VERSION),
            (SETTINGS, &identity.settings),
            (TABLE, &identity.table),
            (ENERGIES, &energies),
            (FLOOR, &floor),
            (ROWS, &rows),
            (ZERO_MASS, &zero_mass),
        ];
        let saved = self.model.save_with_notes(path, &notes);
        saved.map_err(|e| Error::checkpoint(path, e))
    }

    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// A damaged file, or one of another job.
    pub(crate) fn load(path: &Path, identity: &Identity) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let damage = |e: &dyn std::fmt::Display| Error::checkpoint(path, e);
        let bytes = std::fs::read(path).map_err(|e| damage(&e))?;
        // First of all the checksum.
        let model = Model::from_bytes(&bytes).map_err(|e| damage(&e))?;
        let info = ModelInfo::read_from(&bytes[..]).map_err(|e| damage(&e))?;
        let note = |name| {
            info.note(name)
                .ok_or_else(|| damage(&"a model, but no checkpoint of a job; name another file"))
        };
        for (name, expected) in [
            (VERSION, crate::VERSION),
            (SETTINGS, &identity.settings),
            (TABLE, &identity.table),
        ] {
            let found = note(name)?;
            if found != expected {
                let what = format!(
                    "is of another job: {name} is {found}, here {expected}; remove it to start again"
                );
                return Err(Error::checkpoint(path, what));
            }
        }
        let numbers = |name| {
            let numbers = of_hex(note(name)?);
            numbers.ok_or_else(|| damage(&"its notes are not numbers; remove the file"))
        };
        let floor = numbers(FLOOR)?.first().copied();
        let (rows, zero_mass) = (note(ROWS)?.parse(), note(ZERO_MASS)?.parse());
        let (Some(floor), Ok(coreset_rows), Ok(zero_mass)) = (floor, rows, zero_mass) else {
            return Err(damage(&"its notes are not numbers; remove the file"));
        };
        Ok(Some(Self {
            free_energies: numbers(ENERGIES)?,
            model,
            floor,
            coreset_rows,
            zero_mass,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use coremix::ndarray::array;

    #[test]
    fn a_checkpoint_comes_back_bit_for_bit_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.cmx");
        let means = array![[0.1, 0.2], [3.0, -4.0]];
        let state = State {
            model: Model::from_parameters(Precision::Single, means.view(), 0.3).unwrap(),
            free_energies: vec![-1.0 / 3.0, 2e300, f64::MIN_POSITIVE],
            floor: 1e-17,
            coreset_rows: 12,
            zero_mass: 3,
        };
        let identity = Identity {
            settings: "k-means { a: \"b\" }".into(),
            table: "1f".into(),
        };
        assert_eq!(State::load(&path, &identity).unwrap(), None);
        state.save(&path, &identity).unwrap();
        assert_eq!(State::load(&path, &identity).unwrap(), Some(state));

        let other = Identity {
            table: "2f".into(),
            ..identity.clone()
        };
        let error = State::load(&path, &other).unwrap_err().to_string();
        assert!(error.contains("another job"), "{error}");

        let bytes = std::fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            std::fs::write(&path, damaged).unwrap();
            assert!(State::load(&path, &identity).is_err(), "byte {at}");
        }
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(State::load(&path, &identity).is_err());
    }
}
