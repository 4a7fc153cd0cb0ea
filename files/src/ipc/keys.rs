//! The key columns of an Arrow file or stream, through the decoder of Arrow.

use super::messages::{Messages, Place};
use crate::ReadAt;
use crate::choice::{self, columns_of};
use crate::fault::{fault, guarded, invalid};
use crate::keys::Keys;
use crate::options::Options;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use coremix::Result;
use std::io;
use std::sync::Arc;

/// Batches of the key columns, one after the other.
struct Batches {
    bytes: Arc<dyn ReadAt>,
    decoder: FileDecoder,
    left: std::vec::IntoIter<Place>,
}

/// The key columns that options name.
pub(crate) fn keys(bytes: Arc<dyn ReadAt>, options: &Options) -> Result<Keys> {
    let name = bytes.name();
    let opened = guarded(|| open(&bytes, options));
    let (schema, mut batches) = opened.map_err(|error| fault(&name, error))?;
    let batches = std::iter::from_fn(move || guarded(|| batches.next()).transpose());
    Ok(Keys::new(name, &schema, batches))
}

fn open(bytes: &Arc<dyn ReadAt>, options: &Options) -> io::Result<(arrow_schema::Schema, Batches)> {
    let messages = Messages::read(bytes)?;
    let places = choice::keys(&columns_of(&messages.schema), options).map_err(invalid)?;
    let schema = messages.schema.project(&places).map_err(invalid)?;
    let mut decoder =
        FileDecoder::new(Arc::new(messages.schema), messages.version).with_projection(places);
    for place in &messages.dictionaries {
        let buffer = checked(place, bytes)?;
        let read = decoder.read_dictionary(&place.block(), &buffer);
        read.map_err(invalid)?;
    }
    let batches = Batches {
        bytes: Arc::clone(bytes),
        decoder,
        left: messages.batches.into_iter(),
    };
    Ok((schema, batches))
}

impl Batches {
    fn next(&mut self) -> io::Result<Option<RecordBatch>> {
        let Some(place) = self.left.next() else {
            return Ok(None);
        };
        let buffer = checked(&place, &self.bytes)?;
        let batch = self.decoder.read_record_batch(&place.block(), &buffer);
        batch.map_err(invalid)
    }
}

/// The bytes of a message, whose compressed buffers can be as long as they say.
fn checked(place: &Place, bytes: &Arc<dyn ReadAt>) -> io::Result<Buffer> {
    place.check_lengths(bytes)?;
    Ok(Buffer::from_vec(place.bytes(bytes)?))
}
