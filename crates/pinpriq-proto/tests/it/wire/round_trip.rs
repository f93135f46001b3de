//! Properties: everything that is encoded decodes to the same, however the stream is cut.

use pinpriq_proto::wire::{Decoded, Framing, Request, decode_request, put_count, put_packet};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::wire::samples::{OwnedPiece, bytes_of, pieces_in, push, requests_in};

/// A request that owns its bytes.
#[derive(Clone, Debug)]
enum Owned {
    Push { queue: Vec<u8>, ttl_ms: u16, priority: u8, key: Vec<u8>, payload: Vec<u8> },
    Pop(Vec<u8>),
    Subscribe(Vec<u8>),
    Unsubscribe(Vec<u8>),
    Ready,
}

impl Owned {
    fn request(&self) -> Request<'_> {
        match self {
            Self::Push { queue, ttl_ms, priority, key, payload } => {
                push(queue, *ttl_ms, *priority, key, payload)
            }
            Self::Pop(queue) => Request::Pop { queue },
            Self::Subscribe(queue) => Request::Subscribe { queue },
            Self::Unsubscribe(queue) => Request::Unsubscribe { queue },
            Self::Ready => Request::Ready,
        }
    }
}

/// Mostly short fields, since the interesting places are the ends of fields, and sometimes one
/// whose length needs both length bytes.
fn field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 250..700)]
}

fn owned_request() -> impl Strategy<Value = Owned> {
    prop_oneof![
        (field(), any::<u16>(), any::<u8>(), field(), field()).prop_map(
            |(queue, ttl_ms, priority, key, payload)| Owned::Push {
                queue,
                ttl_ms,
                priority,
                key,
                payload
            }
        ),
        field().prop_map(Owned::Pop),
        field().prop_map(Owned::Subscribe),
        field().prop_map(Owned::Unsubscribe),
        Just(Owned::Ready),
    ]
}

/// Cuts `stream` at each of `cuts`.
fn cut<'a>(stream: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    ends.push(stream.len());
    ends.sort_unstable();
    let mut start = 0;
    ends.into_iter()
        .map(|end| {
            let chunk = &stream[start..end];
            start = end;
            chunk
        })
        .collect()
}

proptest! {
    #[test]
    fn a_request_comes_back_as_it_was(owned in owned_request()) {
        let bytes = bytes_of(owned.request());
        let whole = Decoded::Message { request: owned.request(), length: bytes.len() };
        prop_assert_eq!(decode_request(&bytes), Ok(whole));
    }

    #[test]
    fn a_stream_of_requests_survives_every_cutting(
        owned in vec(owned_request(), 0..20),
        cuts in vec(any::<Index>(), 0..20),
    ) {
        let expected: Vec<_> = owned.iter().map(|owned| bytes_of(owned.request())).collect();
        let stream = expected.concat();
        let (seen, rest) = requests_in(cut(&stream, &cuts).into_iter());
        prop_assert_eq!(seen, expected);
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_stream_of_frames_survives_every_cutting(
        frames in vec(vec((field(), field()), 0..5), 0..8),
        counted in any::<bool>(),
        cuts in vec(any::<Index>(), 0..20),
    ) {
        let framing = if counted { Framing::Counted } else { Framing::Bare };
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for packets in &frames {
            let mut left = u16::try_from(packets.len()).unwrap();
            if counted {
                put_count(&mut stream, left);
                expected.push(OwnedPiece::Count(left));
            }
            for (key, payload) in packets {
                put_packet(&mut stream, key, payload).unwrap();
                left -= 1;
                let (key, payload) = (key.clone(), payload.clone());
                let left = if counted { left } else { 0 };
                expected.push(OwnedPiece::Packet { key, payload, left });
            }
        }
        let (seen, rest) = pieces_in(framing, cut(&stream, &cuts).into_iter());
        prop_assert_eq!(seen, expected);
        prop_assert!(rest.is_empty());
    }
}
