//! A scheduler and two executors as processes on the loopback interface.

use crate::common::*;
use coremix_cluster::{Connection, Error, Fitted, Job, connect};
use datafusion::dataframe::DataFrame;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Two cores: one cluster at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(240);

/// A process that ends with the test.
struct Process(Mutex<Child>);

impl Process {
    fn start(program: &str, arguments: &[String]) -> Self {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Self(Mutex::new(command.spawn().expect("the program starts")))
    }

    /// SIGKILL.
    fn kill(&self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }

    fn runs(&self) -> bool {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Cluster {
    url: String,
    scheduler: Arc<Process>,
    executors: Vec<Arc<Process>>,
    _work: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

/// A port that nobody listens on.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn wait_for(port: u16, process: &Process) {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(process.runs(), "the process ended");
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "nothing listens on port {port}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Cluster {
    fn start() -> Self {
        Self::of_versions(&[], &[])
    }

    /// With further arguments of the scheduler, and of each executor.
    fn of_versions(of_scheduler: &[&str], of_executors: &[&str]) -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let work = tempfile::tempdir().unwrap();
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let main = port();
        let mut arguments = owned(&["--executor-timeout", "6", "--address"]);
        arguments.push(format!("127.0.0.1:{main}"));
        arguments.extend(owned(of_scheduler));
        let scheduler = Process::start(env!("CARGO_BIN_EXE_coremix-scheduler"), &arguments);
        wait_for(main, &scheduler);
        let mut executors = Vec::new();
        for i in 0..2 {
            let (results, tasks) = (port(), port());
            let folder = work.path().join(i.to_string());
            std::fs::create_dir(&folder).unwrap();
            let mut arguments = owned(&[
                "--scheduler-host",
                "127.0.0.1",
                "--cores",
                "1",
                "--heartbeat",
                "1",
            ]);
            arguments.extend(["--scheduler-port".into(), main.to_string()]);
            arguments.extend(["--port".into(), results.to_string()]);
            arguments.extend(["--grpc-port".into(), tasks.to_string()]);
            arguments.extend(["--work-dir".into(), folder.display().to_string()]);
            arguments.extend(owned(of_executors));
            let executor = Process::start(env!("CARGO_BIN_EXE_coremix-executor"), &arguments);
            wait_for(tasks, &executor);
            wait_for(results, &executor);
            executors.push(Arc::new(executor));
        }
        Self {
            url: format!("df://127.0.0.1:{main}"),
            scheduler: Arc::new(scheduler),
            executors,
            _work: work,
            _one: one,
        }
    }

    async fn table(&self, folder: &Path) -> DataFrame {
        let connection = Connection {
            partitions: 4,
            ..Connection::default()
        };
        read(&connect(&self.url, connection).await.unwrap(), folder).await
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work)
        .await
        .expect("ends in time")
}

/// Fits, and kills a process a moment after iteration 1 was shown: within the pass that follows.
async fn fit_and_kill(
    job: &Job,
    table: &DataFrame,
    process: &Arc<Process>,
) -> Result<Fitted, Error> {
    let shown = Arc::new(AtomicUsize::new(0));
    let mut killer = None;
    let mut observer = |progress: coremix_cluster::Progress| {
        shown.store(progress.iteration, Ordering::SeqCst);
        if progress.iteration == 1 {
            let (process, shown) = (process.clone(), shown.clone());
            killer = Some(std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                process.kill();
                shown.load(Ordering::SeqCst)
            }));
        }
    };
    let result = in_time(job.fit_observed(table, &mut observer)).await;
    let last = killer.expect("the job came to iteration 1").join().unwrap();
    assert_eq!(last, 1, "the pass was over before the process was killed");
    result
}

/// A job whose passes take longer than a moment: all components share each row.
fn slow() -> (Job, coremix::ndarray::Array2<f32>) {
    let algorithm = "gmm".parse::<coremix::Algorithm>().unwrap().clusters(200);
    let job = Job::new(algorithm.max_iterations(3), ["f0", "f1", "f2", "f3"]);
    (
        job.coreset(1_000).tolerance(0.0).max_iterations(3).seed(5),
        points(4_000),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gives_the_same_bits() {
    let points = points(80);
    let folder = tempfile::tempdir().unwrap();
    let (wide, lists) = (folder.path().join("wide"), folder.path().join("lists"));
    write(&wide, &points, 5, Layout::Wide).await;
    write(&lists, &points, 3, Layout::FixedSizeList).await;
    let cluster = Cluster::start();
    for algorithm in ["fast", "vc-gmm", "gmm"] {
        let job = job(algorithm).key("id");
        let here = open(&wide, 7, 300).await;
        let there = cluster.table(&wide).await;
        let expected = job.fit(&here).await.unwrap();
        let fitted = in_time(job.fit(&there)).await.unwrap();
        assert_eq!(bits(&fitted), bits(&expected), "{algorithm}");
        let score = in_time(job.score(&there, &fitted.model)).await.unwrap();
        assert_eq!(score, job.score(&here, &fitted.model).await.unwrap());
        let job = job_of_lists(algorithm).key("id");
        let fitted = in_time(job.fit(&cluster.table(&lists).await))
            .await
            .unwrap();
        assert_eq!(bits(&fitted), bits(&expected), "{algorithm} of lists");
    }
    // Labels, written by the executors.
    let job = job("fast").key("id");
    let fitted = job.fit(&open(&wide, 1, 8192).await).await.unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let table = cluster.table(&wide).await;
    let assign = job.assign(&table, &fitted.model, there.to_str().unwrap());
    in_time(assign).await.unwrap();
    job.assign(
        &open(&wide, 1, 8192).await,
        &fitted.model,
        here.to_str().unwrap(),
    )
    .await
    .unwrap();
    assert_eq!(labels(&there).await, labels(&here).await);

    // Columns that cannot be used are named as in the process.
    let error = in_time(job.clone().key("nothing").fit(&cluster.table(&wide).await)).await;
    assert!(matches!(error, Err(Error::Column { .. })));
    let connection = Connection {
        message_limit: 100_000,
        partitions: 4,
    };
    let context = connect(&cluster.url, connection).await.unwrap();
    let algorithm = "k-means"
        .parse::<coremix::Algorithm>()
        .unwrap()
        .clusters(1_500);
    let large = Job::new(algorithm, ["f0", "f1", "f2", "f3"])
        .coreset(2_000)
        .key("id");
    let error = in_time(large.fit(&read(&context, &wide).await))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::MessageSize { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_is_killed_in_a_pass() {
    let folder = tempfile::tempdir().unwrap();
    let (job, points) = slow();
    write(folder.path(), &points, 6, Layout::Wide).await;
    let expected = job.fit(&open(folder.path(), 2, 8192).await).await.unwrap();
    let cluster = Cluster::start();
    let table = cluster.table(folder.path()).await;
    let fitted = fit_and_kill(&job, &table, &cluster.executors[1])
        .await
        .unwrap();
    assert!(!cluster.executors[1].runs() && cluster.executors[0].runs());
    assert_eq!(bits(&fitted), bits(&expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_is_killed_in_a_pass() {
    let folder = tempfile::tempdir().unwrap();
    let (job, points) = slow();
    let rows = folder.path().join("rows");
    write(&rows, &points, 6, Layout::Wide).await;
    let path = folder.path().join("job.cmx");
    let expected = job.fit(&open(&rows, 2, 8192).await).await.unwrap();
    let job = job.checkpoint(&path);
    let cluster = Cluster::start();
    let table = cluster.table(&rows).await;
    let start = Instant::now();
    let error = fit_and_kill(&job, &table, &cluster.scheduler)
        .await
        .unwrap_err();
    assert!(start.elapsed() < LIMIT);
    let text = error.to_string();
    assert!(
        matches!(&error, Error::Connection { checkpoint: Some(at), .. } if *at == path),
        "{text}"
    );
    assert!(
        text.contains("run the job again to go on from the checkpoint"),
        "{text}"
    );
    drop(cluster);

    // On another cluster, then in the process: the same bits as a job that was never stopped.
    let copy = folder.path().join("copy.cmx");
    std::fs::copy(&path, &copy).unwrap();
    let cluster = Cluster::start();
    let fitted = in_time(job.fit(&cluster.table(&rows).await)).await.unwrap();
    assert_eq!(bits(&fitted), bits(&expected));
    drop(cluster);
    let job = job.checkpoint(&copy);
    let fitted = job.fit(&open(&rows, 3, 1000).await).await.unwrap();
    assert_eq!(bits(&fitted), bits(&expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_differ_are_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &points(20), 2, Layout::Wide).await;
    let other = ["--functions-of", "9.9.9"];
    for (scheduler, executors) in [(&other[..], &other[..]), (&other, &[]), (&[], &other)] {
        let cluster = Cluster::of_versions(scheduler, executors);
        let table = cluster.table(folder.path()).await;
        let error = in_time(job("fast").fit(&table)).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Version { .. }), "{text}");
        assert!(
            text.starts_with("versions differ: this program is coremix-cluster")
                && text.len() < 300,
            "{text}"
        );
    }
    // Nobody at all.
    let context = connect("df://127.0.0.1:1", Connection::default())
        .await
        .unwrap();
    let error = in_time(job("fast").fit(&read(&context, folder.path()).await))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Connection { .. }), "{error}");
}
