//! Files of labels: whole or not at all, known again by what is in them, and the same through a stream.

use coremix_files::{LabelWriter, NpyWriter};

/// Bytes of the header of an `.npy` file.
const HEADER: usize = 128;

/// Labels that are hard to compress, three times.
#[cfg(unix)]
fn write_many(path: &std::path::Path) -> coremix::Result<()> {
    let labels = (0..40_000u32).map(|i| i.wrapping_mul(2_654_435_761));
    let labels: Vec<u32> = labels.collect();
    let mut writer = LabelWriter::create(path, None, &[])?;
    (0..3).try_for_each(|_| writer.write(&labels, &[]))?;
    writer.finish()
}

/// The shell limits the size of files, and this test calls itself with that limit.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file() {
    const PATH: &str = "COREMIX_TEST_OF_A_FULL_DISK";
    if let Some(path) = std::env::var_os(PATH) {
        let error = write_many(path.as_ref()).unwrap_err().to_string();
        assert!(error.contains("labels."), "{error}");
        return;
    }
    for ending in ["npy", "parquet", "arrow", "csv"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels").with_extension(ending);
        std::fs::write(&path, b"before").unwrap();
        // In blocks of 512 bytes.
        for room in [0, 1, 2, 20, 400] {
            let limited = format!("trap '' XFSZ; ulimit -f {room}; exec \"$0\" \"$@\"");
            let this = std::env::current_exe().unwrap();
            let run = std::process::Command::new("sh")
                .args(["-c", &limited])
                .arg(this)
                .args(["--exact", "labels::a_full_disk_leaves_the_old_file"])
                .env(PATH, &path)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success(), "{ending}, {room}: {said}");
            assert!(said.contains("1 passed"), "{said}");
            assert_eq!(std::fs::read(&path).unwrap(), b"before");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        write_many(&path).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > 400 * 512);
    }
}

#[test]
fn a_file_gets_its_name_when_it_is_whole() {
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

#[test]
fn labels_are_known_by_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for ending in ["npy", "parquet", "arrow", "csv", "csv.gz"] {
        let path = path("labels").with_extension(ending);
        assert!(!LabelWriter::wrote(&path, &[]));
        for rows in [0, 3] {
            let mut writer = LabelWriter::create(&path, None, &[]).unwrap();
            writer.write(&vec![7; rows], &[]).unwrap();
            writer.finish().unwrap();
            // Labels alone in CSV may be anyone's.
            assert_eq!(LabelWriter::wrote(&path, &[]), ending != "csv", "{ending}");
        }
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[1..bytes.len() - 1]).unwrap();
        assert!(!LabelWriter::wrote(&path, &[]), "{ending}");
    }
    let mut writer = NpyWriter::<f32>::numbers(path("x.npy")).unwrap();
    writer.write(&[1.0; 9]).unwrap();
    writer.finish().unwrap();
    let mut writer = NpyWriter::<u32>::rows(path("rows.npy"), 2).unwrap();
    writer.write(&[1; 18]).unwrap();
    writer.finish().unwrap();
    assert!(!LabelWriter::wrote(path("x.npy"), &[]));
    assert!(!LabelWriter::wrote(path("rows.npy"), &[]));
    for (text, is_own) in [
        ("label\n", false),
        ("label\n3\n", false),
        ("label,score\n3,0.5\n", true),
        ("id,label\na,3\n", true),
        ("id,label,score\na,3,0.5\n", true),
        ("label,id\n3,a\n", true),
        ("", false),
        ("id\na\n", false),
        ("id,label\na,cat\n", false),
        ("id,label\na,-1\n", false),
        ("id,label\na\n", false),
        ("id,x,label\na,1,3\n", false),
        ("\u{fffd}PNG", false),
    ] {
        std::fs::write(path("t.csv"), text).unwrap();
        let found = LabelWriter::wrote(path("t.csv"), &["id", "score"]);
        assert_eq!(found, is_own, "{text}");
    }
    assert!(!LabelWriter::wrote(folder.path(), &[]));
}

/// The labels of others, as NumPy writes them.
#[test]
fn truth_is_no_file_of_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labels.npy");
    let mut writer = NpyWriter::<u32>::numbers(&path).unwrap();
    writer.write(&[3; 90]).unwrap();
    writer.finish().unwrap();
    assert!(LabelWriter::wrote(&path, &[]));
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(&bytes[HEADER - 2..HEADER], b"\t\n");
    bytes[HEADER - 2] = b' ';
    std::fs::write(&path, bytes).unwrap();
    assert!(!LabelWriter::wrote(&path, &[]));
}

/// A file keeps its mode, a pipe stays one, and what killed writers have left goes.
#[cfg(unix)]
#[test]
fn files_stay_what_they_are() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str| {
        let mut writer = LabelWriter::create(at(name), None, &[]).unwrap();
        writer.write(&[1, 2], &[]).unwrap();
        writer.finish().unwrap();
    };
    for mode in [0o600, 0o640, 0o666] {
        std::fs::write(at("l.csv"), "label\n").unwrap();
        let own = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(at("l.csv"), own).unwrap();
        write("l.csv");
        let found = at("l.csv").metadata().unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode);
    }
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe.csv"))
        .status();
    if made.is_ok_and(|made| made.success()) {
        let path = at("pipe.csv");
        let reader = std::thread::spawn(move || std::fs::read_to_string(path).unwrap());
        write("pipe.csv");
        assert_eq!(reader.join().unwrap(), "label\n1\n2\n");
        assert!(at("pipe.csv").metadata().unwrap().file_type().is_fifo());
    }
    // Another one that writes to the same name is left alone.
    let other = LabelWriter::create(at("l.csv"), None, &[]).unwrap();
    let names = [
        ".l.csv.coremix-aB3dE9.tmp",
        ".l.csv.backup.tmp",
        ".m.csv.coremix-aB3dE9.tmp",
    ];
    names
        .iter()
        .for_each(|name| std::fs::write(at(name), "x").unwrap());
    write("l.csv");
    assert_eq!(names.map(|name| at(name).exists()), [false, true, true]);
    other.finish().unwrap();
    assert_eq!(std::fs::read_to_string(at("l.csv")).unwrap(), "label\n");
}

#[test]
fn a_stream_has_the_bytes_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labels.csv");
    let (to, from) = std::sync::mpsc::channel::<u8>();
    struct Pipe(std::sync::mpsc::Sender<u8>);
    impl std::io::Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let sent = bytes.iter().try_for_each(|byte| self.0.send(*byte));
            let closed = |_| std::io::ErrorKind::BrokenPipe.into();
            sent.map(|()| bytes.len()).map_err(closed)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let writers = [
        LabelWriter::create(&path, None, &["x"]),
        LabelWriter::to_stream(Pipe(to.clone()), "pipe", None, &["x"]),
    ];
    for writer in writers {
        let mut writer = writer.unwrap();
        writer.write(&[1, 2], &[&[0.5, 1e-300]]).unwrap();
        writer.write(&[3], &[&[-2.0]]).unwrap();
        writer.finish().unwrap();
    }
    let bytes: Vec<u8> = from.try_iter().collect();
    assert_eq!(bytes, std::fs::read(&path).unwrap());
    assert!(LabelWriter::to_stream(Pipe(to.clone()), "pipe", None, &["x", "x"]).is_err());
    drop(from);
    let error = LabelWriter::to_stream(Pipe(to), "pipe", None, &[]).unwrap_err();
    assert!(error.to_string().starts_with("pipe: "), "{error}");
}
