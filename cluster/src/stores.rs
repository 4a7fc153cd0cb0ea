//! Where files are: local disks, what was registered, and S3 buckets by their URL.

use datafusion::common::Result;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use object_store::ObjectStore;
use std::sync::Arc;
use url::Url;

/// Object stores that are made when they are first asked for.
///
/// With the feature `aws`, `s3://bucket/..` is a bucket whose credentials, region and endpoint come from the environment of
/// the process: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL` for
/// servers that are not Amazon's, and `AWS_ALLOW_HTTP=true` for those without TLS. On a cluster the client, the scheduler
/// and the executors each need them.
#[derive(Debug, Default)]
pub struct Stores {
    known: DefaultObjectStoreRegistry,
}

impl Stores {
    /// The local disks, and what is registered later.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A runtime of the engine with these stores.
    ///
    /// ```
    /// use coremix_cluster::Stores;
    /// use datafusion::prelude::{SessionConfig, SessionContext};
    /// let context = SessionContext::new_with_config_rt(SessionConfig::new(), Stores::new().runtime()?);
    /// # let store = std::sync::Arc::new(object_store::memory::InMemory::new());
    /// context.register_object_store(&url::Url::parse("s3://bucket")?, store); // any other store
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the engine cannot make one.
    pub fn runtime(self) -> Result<Arc<RuntimeEnv>> {
        let runtime = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(self));
        runtime.build_arc()
    }
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.known.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.known.get_store(url) {
            return Ok(store);
        }
        let store = made(url)?;
        self.known.register_store(url, store.clone());
        Ok(store)
    }
}

#[cfg(feature = "aws")]
fn made(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    use datafusion::common::config_err;
    use object_store::aws::AmazonS3Builder;

    match (url.scheme(), url.host_str()) {
        ("s3", Some(bucket)) => {
            let store = AmazonS3Builder::from_env().with_bucket_name(bucket);
            Ok(Arc::new(store.build()?))
        }
        _ => config_err!("{url}: no such store; known are local paths and s3://bucket/.."),
    }
}

#[cfg(not(feature = "aws"))]
fn made(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    datafusion::common::config_err!(
        "{url}: no such store; s3://bucket/.. needs coremix-cluster with the feature `aws`"
    )
}
