//! How messages between supervisor and lab travel over their socket: the length in four bytes, little endian, and the
//! message in postcard's encoding. There is one for every sample, so their cost matters in a virtual machine.

use serde::Serialize;
use serde::de::DeserializeOwned;

const LENGTH_BYTES: usize = 4;

/// A message as it is sent.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    let mut bytes = postcard::to_extend(message, vec![0; LENGTH_BYTES])?;
    let length = u32::try_from(bytes.len() - LENGTH_BYTES);
    let length = length.map_err(|_| postcard::Error::SerializeBufferFull)?;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// What was received and not yet taken.
#[derive(Debug, Default)]
pub(crate) struct Received {
    bytes: Vec<u8>,
    /// How much of it was taken.
    taken: usize,
}

impl Received {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next message; `None` if it has not come as a whole.
    pub(crate) fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, postcard::Error> {
        let Some((length, rest)) = self.bytes[self.taken..].split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        self.taken += LENGTH_BYTES + length;
        match postcard::take_from_bytes(message)? {
            (message, []) => Ok(Some(message)),
            _ => Err(postcard::Error::DeserializeBadEncoding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_and_in_order_however_they_were_cut() {
        let sent: Vec<(u64, String)> = (0..40)
            .map(|number| (number << number, "x".repeat(number as usize * 7)))
            .collect();
        let stream: Vec<u8> = sent.iter().flat_map(|one| encode(one).unwrap()).collect();
        for piece in [1, 3, 64, stream.len()] {
            let mut received = Received::default();
            let mut taken: Vec<(u64, String)> = Vec::new();
            for bytes in stream.chunks(piece) {
                received.push(bytes);
                while let Some(message) = received.take().unwrap() {
                    taken.push(message);
                }
            }
            assert_eq!(taken, sent);
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let mut received = Received::default();
        received.push(&[1, 0, 0, 0, 0xff]);
        assert!(received.take::<u64>().is_err());
        // A byte too many.
        received.push(&[2, 0, 0, 0, 7, 7]);
        assert!(received.take::<u64>().is_err());
    }
}
