//! Every command with its options, replies and refusals, in both versions of the protocol, and once
//! more over TLS.

use expect_test::expect_file;

use super::script::play;
use crate::world::test;

/// Plays one file; with `UPDATE_EXPECT=1` its answers are written anew.
macro_rules! conversations {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                test(async || {
                    let page = concat!("../../../testdata/resp/", stringify!($name), ".txt");
                    let played = play(include_str!(concat!(
                        "../../../testdata/resp/",
                        stringify!($name),
                        ".txt"
                    )));
                    expect_file![page].assert_eq(&played.await);
                });
            }
        )*

        crate::line::encrypted_too! { $($name)* }
    };
}

conversations! {
    put put_at put_buried take take_done pop peek finish touch bury failures moving rates fair
    transfer update awaiting wait_put room unique looking blocking push queues settings pause
    listing stats arguments options checks schedules connection protocols frames limits expiry
    receipts turns deque xqueue fanout lanes lane_ends shards transactions carrying users shares
    costs share_room headers named_limits ageing recall cancel cancel_shards progress held attempts
    results bulk batches
}
