//! Buckets of a server that speaks a little of the S3 protocol, on the loopback interface.

use crate::common::*;
use coremix_cluster::Stores;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A job on a bucket, with what the environment says of it. A process of its own: the environment of a process that runs
/// tests cannot be changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is run by `buckets_are_found_by_the_environment`"]
async fn job_on_a_bucket() {
    let runtime = Stores::new().runtime().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    let rows = context.read_parquet("s3://bucket/rows/", ParquetReadOptions::default());
    let table = rows.await.unwrap();
    let job = job("fast").key("id");
    let fitted = job.fit(&table).await.unwrap();
    let path = "s3://bucket/labels/";
    job.assign(&table, &fitted.model, path).await.unwrap();
    println!("found {:?}", bits(&fitted));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buckets_are_found_by_the_environment() {
    let points = points(20);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &points, 2, Layout::Wide).await;
    let objects = Objects::default();
    for file in 0..2 {
        let bytes = std::fs::read(folder.path().join(format!("{file}.parquet"))).unwrap();
        let mut objects = objects.lock().unwrap();
        objects.insert(format!("rows/{file}.parquet"), bytes);
    }
    let endpoint = serve(objects.clone());
    let run = |secret: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "s3::job_on_a_bucket", "--ignored", "--nocapture"])
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "here")
            .env("AWS_ACCESS_KEY_ID", secret)
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .output()
            .unwrap()
    };
    let output = run("the-key");
    let found = String::from_utf8_lossy(&output.stdout);
    let job = job("fast").key("id");
    let expected = job.fit(&open(folder.path(), 1, 8192).await).await.unwrap();
    let text = format!("found {:?}", bits(&expected));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(found.contains(&text), "{found} {errors}");
    let written = |objects: &Objects| {
        let objects = objects.lock().unwrap();
        objects
            .keys()
            .filter(|key| key.starts_with("labels/"))
            .count()
    };
    assert!(written(&objects) > 0);
    assert!(!run("another-key").status.success());
}

/// Starts the server; its URL. It ends with the process.
fn serve(objects: Objects) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let objects = objects.clone();
            std::thread::spawn(move || while answer(&stream, &objects).is_some() {});
        }
    });
    url
}

/// Answers one request; `None` at the end of the connection.
fn answer(stream: &TcpStream, objects: &Objects) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|n| *n > 0)?;
    let mut parts = first.split_whitespace();
    let (method, target) = (parts.next()?.to_string(), parts.next()?.to_string());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_string()),
            None => break,
        };
    }
    let length = headers.get("content-length").and_then(|n| n.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;

    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let key = path
        .strip_prefix("/bucket")
        .unwrap_or_default()
        .trim_start_matches('/');
    let mut objects = objects.lock().ok()?;
    let signed = headers
        .get("authorization")
        .is_some_and(|a| a.contains("Credential=the-key/"));
    let (status, extra, content) = if !signed {
        ("403 Forbidden", String::new(), Vec::new())
    } else if method == "PUT" {
        objects.insert(key.to_string(), body);
        ("200 OK", "ETag: \"1\"\r\n".to_string(), Vec::new())
    } else if query.contains("list-type=2") {
        let prefix = query
            .split('&')
            .find_map(|part| part.strip_prefix("prefix="));
        let prefix = prefix.unwrap_or_default().replace("%2F", "/");
        let entry = |(key, bytes): (&String, &Vec<u8>)| {
            let size = bytes.len();
            format!(
                "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        };
        let found = objects
            .iter()
            .filter(|object| object.0.starts_with(&prefix));
        let entries: String = found.map(entry).collect();
        let list = format!("<ListBucketResult>{entries}</ListBucketResult>");
        ("200 OK", String::new(), list.into_bytes())
    } else if let Some(bytes) = objects.get(key) {
        let whole = "ETag: \"1\"\r\nLast-Modified: Wed, 01 Jan 2020 00:00:00 GMT\r\n".to_string();
        match headers
            .get("range")
            .and_then(|range| within(range, bytes.len()))
        {
            Some((start, end)) => {
                let range = format!(
                    "Content-Range: bytes {start}-{}/{}\r\n",
                    end - 1,
                    bytes.len()
                );
                (
                    "206 Partial Content",
                    whole + &range,
                    bytes[start..end].to_vec(),
                )
            }
            None => ("200 OK", whole, bytes.clone()),
        }
    } else {
        ("404 Not Found", String::new(), Vec::new())
    };
    let length = content.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{extra}\r\n");
    let mut stream = stream;
    stream.write_all(head.as_bytes()).ok()?;
    if method != "HEAD" {
        stream.write_all(&content).ok()?;
    }
    Some(())
}

/// The bytes that a header asks for: from, and up to.
fn within(range: &str, length: usize) -> Option<(usize, usize)> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    let end_of = |end: &str| end.parse::<usize>().ok().map(|end| (end + 1).min(length));
    match (start.parse::<usize>().ok(), end_of(end)) {
        (Some(start), Some(end)) => Some((start, end)),
        (Some(start), None) => Some((start, length)),
        (None, _) => Some((length.saturating_sub(end.parse().ok()?), length)),
    }
}
