//! What is written: labels and other results, rows; as `.npy` and as Parquet.

mod npy;
mod output;
mod parquet;

pub use npy::{NpyNumber, NpyWriter};
pub use parquet::ParquetWriter;

#[cfg(test)]
mod tests {
    use super::npy::HEADER;
    use super::output::Output;
    use super::{NpyWriter, ParquetWriter};

    #[test]
    fn a_full_disk_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels");
        std::fs::write(&path, b"before").unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        // Hard to compress.
        let labels = (0..40_000u32).map(|i| i.wrapping_mul(2_654_435_761));
        let labels: Vec<u32> = labels.collect();
        for room in [0, 100, HEADER, HEADER + 100, 10_000, 200_000] {
            let output = || Output::create(&path).unwrap().on_a_full_disk(room);
            let npy = NpyWriter::new(output(), None).and_then(|mut writer| {
                (0..3).try_for_each(|_| writer.write(&labels))?;
                writer.finish()
            });
            let parquet = ParquetWriter::new(output(), None, &[]).and_then(|mut writer| {
                (0..3).try_for_each(|_| writer.write(&labels, &[]))?;
                writer.finish()
            });
            for written in [npy, parquet] {
                let error = written.unwrap_err().to_string();
                assert!(error.contains("labels: "), "{error}");
                assert_eq!(std::fs::read(&path).unwrap(), b"before");
                assert_eq!(files(), 1);
            }
        }
        let mut writer = NpyWriter::<u32>::numbers(&path).unwrap();
        assert_eq!(files(), 2);
        writer.write(&[7; 10]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        writer.finish().unwrap();
        assert_eq!(files(), 1);
        assert_eq!(std::fs::read(&path).unwrap().len(), HEADER + 40);
        assert!(ParquetWriter::create(&path, None, &["x", "x"]).is_err());
        let mut writer = ParquetWriter::create(&path, None, &["x"]).unwrap();
        assert!(writer.write(&[1, 2], &[&[1.0]]).is_err());
        assert!(writer.write(&[1, 2], &[]).is_err());
        writer.write(&[1, 2], &[&[1.0, 2.0]]).unwrap();
        writer.finish().unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(b"PAR1"));
    }
}
