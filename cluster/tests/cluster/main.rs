//! Jobs in the process and on a cluster.

#[cfg(feature = "ballista")]
mod cluster;
mod common;
mod embedded;
mod hostile;
mod oracle;
#[cfg(feature = "aws")]
mod s3;
mod sampling;
