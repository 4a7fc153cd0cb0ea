//! What is written: labels and other results; rows.

mod labels;
mod npy;
mod output;

pub use labels::LabelWriter;
pub use npy::{NpyNumber, NpyWriter};

#[cfg(test)]
mod tests {
    use super::npy::HEADER;
    use super::output::Output;
    use super::{LabelWriter, NpyWriter};

    #[test]
    fn a_full_disk_leaves_the_old_file() {
        for ending in ["npy", "parquet", "csv"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("labels").with_extension(ending);
            std::fs::write(&path, b"before").unwrap();
            let files = || std::fs::read_dir(folder.path()).unwrap().count();
            // Hard to compress.
            let labels = (0..40_000u32).map(|i| i.wrapping_mul(2_654_435_761));
            let labels: Vec<u32> = labels.collect();
            for room in [0, 100, HEADER, HEADER + 100, 10_000, 200_000] {
                let output = Output::create(&path).unwrap().on_a_full_disk(room);
                let written = LabelWriter::new(output, None, &[]).and_then(|mut writer| {
                    (0..3).try_for_each(|_| writer.write(&labels, &[]))?;
                    writer.finish()
                });
                let error = written.unwrap_err().to_string();
                assert!(error.contains(ending), "{error}");
                assert_eq!(std::fs::read(&path).unwrap(), b"before");
                assert_eq!(files(), 1);
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.npy");
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        std::fs::write(&path, b"before").unwrap();
        let mut writer = NpyWriter::<u32>::numbers(&path).unwrap();
        assert_eq!(files(), 2);
        writer.write(&[7; 10]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        writer.finish().unwrap();
        assert_eq!(files(), 1);
        assert_eq!(std::fs::read(&path).unwrap().len(), HEADER + 40);
        assert!(LabelWriter::create(&path, None, &["x"]).is_err());
        let path = folder.path().join("labels.parquet");
        assert!(LabelWriter::create(&path, None, &["x", "x"]).is_err());
        let mut writer = LabelWriter::create(&path, None, &["x"]).unwrap();
        assert!(writer.write(&[1, 2], &[&[1.0]]).is_err());
        assert!(writer.write(&[1, 2], &[]).is_err());
        writer.write(&[1, 2], &[&[1.0, 2.0]]).unwrap();
        writer.finish().unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(b"PAR1"));
    }
}
